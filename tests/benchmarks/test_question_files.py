"""Question files as people write them."""

import json
from pathlib import Path

import pytest

from heedful import MissingError, UsageError
from heedful.benchmarks.question_files import read_questions
from heedful.types import Choice


def jsonl(folder: Path, *rows: object) -> Path:
    file = folder / "q.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_ids_and_answers_may_be_numbers_and_several_answers_may_be_right(tmp_path: Path) -> None:
    first, second, third = read_questions(
        jsonl(
            tmp_path,
            {"id": 1, "question": "How many?", "answer": 12},
            {"id": "b", "question": "Where?", "answer": ["Ghent", "Gent"], "meta": {"page": 3}},
            {"question": "How long?", "answer": [1.5, "90 minutes"]},
        )
    )
    assert (first.id, first.targets) == ("1", ("12",))
    assert (second.answer, second.also, second.meta) == ("Ghent", ("Gent",), {"page": 3})
    assert third.targets == ("1.5", "90 minutes")
    assert len(third.id) == 12


def test_a_csv_file_names_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_bytes(
        "\ufeffId,Question,A,B,Answer,answer2,topic\r\n"
        '7,"Which bird, of these, swims?",penguin,lark,A,,birds\r\n'
        ",Where is it?,,,Ghent,Gent,\r\n".encode()
    )
    bird, city = read_questions(file)
    assert (bird.id, bird.question, bird.targets) == ("7", "Which bird, of these, swims?", ("A",))
    assert bird.choices == (Choice(label="A", text="penguin"), Choice(label="B", text="lark"))
    assert bird.meta == {"topic": "birds"}
    assert (city.targets, city.choices) == (("Ghent", "Gent"), ())


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("q.csv", "id,question\n1,x\n", "no column answer"),
        ("q.csv", "question,answer\nWhere, when?,now\n", "line 2 does not have 2 cells"),
        ("q.csv", 'question,answer\n"Where,now\n', "is not CSV"),
        ("q.jsonl", '{"question": "", "answer": "x"}', "line 1 has an empty question"),
        ("q.jsonl", '{"question": "x", "answer": []}', "line 1 has no answer"),
        ("q.jsonl", '{"question": "x", "answer": " "}', "line 1 has no answer"),
        ("q.jsonl", '{"question": "x", "answer": true}', "line 1 is not a question"),
        ("q.jsonl", '{"question": "x", "answer": 1}\n' * 2, "more than once"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=says):
        read_questions(tmp_path / name)


def test_bytes_that_are_not_text_and_a_missing_file_are_told(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes(b"question,answer\n\xff,1\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_questions(tmp_path / "q.csv")
    with pytest.raises(MissingError, match=r"no\.jsonl"):
        read_questions(tmp_path / "no.jsonl")
