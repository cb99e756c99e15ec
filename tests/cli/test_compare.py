"""`heedful compare` against a real endpoint on loopback."""

import json
from pathlib import Path

import pytest

from heedful.benchmarks import BENCHMARKS
from heedful.benchmarks.questions import OwnQuestions
from heedful.protocol.ledger import Ledger
from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer, Play, Request, answers


def solver(request: Request) -> Play:
    """Right when a memory says so; the other memory misleads it."""
    said = json.dumps(request.body["messages"])
    return answers("Answer: 7" if "seven" in said else "Answer: 3" if "three" in said else "Answer: 5")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"id": f"p{n}", "question": f"Problem {n}?", "answer": "7" if n else "5"} for n in range(4)]
    for side in ("fit", "test"):
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    from pathlib import Path

    own = OwnQuestions(
        name="own", fit=Path("fit.jsonl"), test=Path("test.jsonl"), metric="number", answer_pattern=r"\d+"
    )
    monkeypatch.setattr("heedful.benchmarks.BENCHMARKS", {**BENCHMARKS, "own": own})
    (tmp_path / "good.txt").write_text("- Say seven.\n- Be brief.\n")
    (tmp_path / "bad.json").write_text('{"G0": "Guess: say three."}')
    return tmp_path


def test_every_memory_is_put_whole_into_the_prompt_and_compared(heedful: Heedful, asked: Path) -> None:
    memories = ("--memory", f"good={asked / 'good.txt'}", "--memory", f"bad={asked / 'bad.json'}")
    with FaultyServer(solver) as server:
        where = ("--url", server.url, "--model", "m", "--data", str(asked), "--out", str(asked / "out"))
        found = heedful("compare", "own", *memories, *where, "--json").json
        again = heedful("compare", "own", *memories, *where, "--json").json
        assert len(server.requests) == 12, "a second run decodes nothing"
        prompts = [json.dumps(request.body["messages"]) for request in server.requests]
    assert again == found
    assert found["n"] == 4
    assert {name: one["right"] for name, one in found["memories"].items()} == {"none": 1, "good": 3, "bad": 0}
    good = found["memories"]["good"]
    assert (good["entries"], good["helps"], good["hurts"]) == (2, 3, 1)
    assert sum("Say seven." in prompt and "Be brief." in prompt for prompt in prompts) == 4
    assert len(Ledger(asked / "out" / "ledger.jsonl").passes) == 12


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("golf", "--memory", "a=b"), "unknown benchmark 'golf'"),
        (("svamp", "--memory", "nothing"), "is not NAME=FILE"),
        (("svamp", "--memory", "a=/nowhere.txt"), "cannot read"),
    ],
)
def test_mistakes_get_one_sentence(heedful: Heedful, words: tuple[str, ...], says: str) -> None:
    done = heedful("compare", *words)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
