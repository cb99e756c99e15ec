import json

import pytest

from heedful import MalformedError, UsageError, new_entry, read_entries
from heedful.memory.formats import write_entries


def test_jsonl_round_trips(tmp_path):
    entries = [
        new_entry("Ship before noon.", kind="rule", id="ship", tags=("a",), source="hand"),
        new_entry("2 + 2?", kind="exemplar", response="4\nyes", source="hand"),
    ]
    file = tmp_path / "bank.jsonl"
    file.write_text("".join(f"{line}\n" for line in write_entries(entries, "jsonl")))
    assert read_entries(file) == (entries, [])


def test_a_text_list_gives_one_entry_a_line_without_bullets(tmp_path):
    file = tmp_path / "rules.txt"
    file.write_text("# my rules\n- Ship before noon.\n* Sing.\n\n2) Count twice.\nPlain.\n")
    entries, _ = read_entries(file, kind="hint")
    assert [(e.kind, e.text) for e in entries] == [
        ("hint", "Ship before noon."),
        ("hint", "Sing."),
        ("hint", "Count twice."),
        ("hint", "Plain."),
    ]


BAD = [
    ('{"text": "ok"}', None),
    ('{"txet": "x"}', "unknown field"),
    ("{", "truncated|malformed|ended"),
    ('{"text": "x", "kind": "poem"}', "poem|Invalid enum"),
    ('{"text": " "}', "empty"),
    ('{"text": "q", "kind": "exemplar"}', "response"),
    ('{"text": "x", "digest": "00"}', "digest"),
    ('{"text": "ok"}', "same entry"),
]


def test_bad_lines_refuse_the_whole_file_and_are_named_by_number(tmp_path):
    file = tmp_path / "bank.jsonl"
    file.write_text("\n".join(line for line, _ in BAD))
    with pytest.raises(MalformedError, match="line 2") as caught:
        read_entries(file)
    assert [number for number, _ in caught.value.lines] == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(("line", "complaint"), [pair for pair in BAD if pair[1] and pair[1] != "same entry"])
def test_each_bad_line_says_what_is_wrong(tmp_path, line, complaint):
    file = tmp_path / "bank.jsonl"
    file.write_text(line)
    with pytest.raises(MalformedError, match=complaint):
        read_entries(file)


def test_skip_bad_keeps_the_rest_and_reports_what_it_left_out(tmp_path):
    file = tmp_path / "bank.jsonl"
    file.write_text("\n".join(line for line, _ in BAD))
    entries, bad = read_entries(file, skip_bad=True)
    assert [e.text for e in entries] == ["ok"]
    assert len(bad) == len(BAD) - 1


def test_a_missing_or_binary_file_is_a_users_mistake(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_entries(tmp_path / "none.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_entries(tmp_path / "b.jsonl")


def test_line_separators_inside_json_strings_do_not_split_a_line(tmp_path):
    file = tmp_path / "bank.jsonl"
    file.write_text(json.dumps({"text": "a\u2028b\x85c"}, ensure_ascii=False))
    assert [e.text for e in read_entries(file)[0]] == ["a\u2028b\x85c"]


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path):
    (tmp_path / "a.txt").write_text("- Sing.\n", encoding="utf-8-sig")
    (tmp_path / "a.jsonl").write_text('{"text": "Sing."}\n', encoding="utf-8-sig")
    assert [read_entries(tmp_path / name)[0][0].text for name in ("a.txt", "a.jsonl")] == ["Sing.", "Sing."]
