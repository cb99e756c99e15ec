import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from heedful import MalformedError, UsageError, new_entry, read_entries
from heedful.memory import formats
from heedful.memory.formats import format_of, write_entries
from heedful.testing import SAME_SHORT_ID


def test_jsonl_round_trips(tmp_path: Path) -> None:
    entries = [
        new_entry("Ship before noon.", kind="rule", id="ship", tags=("a",), source="hand"),
        new_entry("2 + 2?", kind="exemplar", response="4\nyes", source="hand"),
    ]
    file = tmp_path / "bank.jsonl"
    file.write_text(write_entries(entries, "jsonl"))
    assert read_entries(file) == (entries, [])


def test_a_text_list_gives_one_entry_a_line_without_bullets(tmp_path: Path) -> None:
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
    ('{"txet": "x"}', "the key `txet` is unknown"),
    ("{", "ends too early"),
    ('{"text": "x", "kind": "poem"}', "poem"),
    ('{"text": " "}', "empty"),
    ('{"text": "q", "kind": "exemplar"}', "response"),
    ('{"text": "x", "digest": "00"}', "digest"),
    ('{"text": "ok"}', "same entry"),
]


def test_bad_lines_refuse_the_whole_file_and_are_named_by_number(tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"
    file.write_text("\n".join(line for line, _ in BAD))
    with pytest.raises(MalformedError, match="line 2") as caught:
        read_entries(file)
    assert [number for number, _ in caught.value.lines] == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(("line", "complaint"), [pair for pair in BAD if pair[1] and pair[1] != "same entry"])
def test_each_bad_line_says_what_is_wrong(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "bank.jsonl"
    file.write_text(line)
    with pytest.raises(MalformedError, match=complaint):
        read_entries(file)


def test_skip_bad_keeps_the_rest_and_reports_what_it_left_out(tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"
    file.write_text("\n".join(line for line, _ in BAD))
    entries, bad = read_entries(file, skip_bad=True)
    assert [e.text for e in entries] == ["ok"]
    assert len(bad) == len(BAD) - 1


def test_a_missing_or_binary_file_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_entries(tmp_path / "none.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_entries(tmp_path / "b.jsonl")


def test_line_separators_inside_json_strings_do_not_split_a_line(tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"
    file.write_text(json.dumps({"text": "a\u2028b\x85c"}, ensure_ascii=False))
    assert [e.text for e in read_entries(file)[0]] == ["a\u2028b\x85c"]


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("- Sing.\n", encoding="utf-8-sig")
    (tmp_path / "a.jsonl").write_text('{"text": "Sing."}\n', encoding="utf-8-sig")
    assert [read_entries(tmp_path / name)[0][0].text for name in ("a.txt", "a.jsonl")] == ["Sing.", "Sing."]


EXPERIENCES = """{
  "G0": "Unité: keep units — always.",
  "G1": "Check: the \\"rest\\" cannot exceed the start."
}"""
AGENT = """agent:
  name: solver
  instructions: |
    You solve problems. Read the experiences first.
    [G0]. Unité: keep units — always.
    [G1]. Check: the "rest" cannot exceed the start.
  tools: []
"""
PLAYBOOK = """## STRATEGIES & INSIGHTS
[str-00001] helpful=3 harmful=1 :: Break problems into steps.
[str-00002] helpful=0 harmful=0 :: Name the unit.

## COMMON MISTAKES
[mis-00001] helpful=0 harmful=2 :: Do not add unlike things.
"""
MEMORIES = json.dumps(
    {
        "results": [
            {"id": "m1", "memory": "Likes tea.", "categories": ["food"], "hash": "x", "metadata": None},
            {"id": "m2", "memory": "Lives in Ghent.", "user_id": "ann"},
        ]
    },
    indent=2,
)


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("e.json", EXPERIENCES, "tfgrpo"),
        ("agent.yaml", AGENT, "tfgrpo-yaml"),
        ("playbook.md", PLAYBOOK, "ace"),
        ("playbook.txt", PLAYBOOK, "ace"),
    ],
)
def test_files_of_other_tools_are_known_and_come_back_byte_for_byte(
    tmp_path: Path, name: str, text: str, format: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert format_of(file, text) == format
    entries, _ = read_entries(file)
    assert write_entries(entries, format, text) == text
    assert all(entry.source == name for entry in entries)


def test_experiences_keep_their_ids_and_are_numbered_anew_when_written(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(EXPERIENCES)
    entries, _ = read_entries(tmp_path / "e.json")
    assert [entry.id for entry in entries] == ["G0", "G1"]
    assert json.loads(write_entries(entries[1:], "tfgrpo")) == {"G0": entries[1].text}


def test_experiences_go_into_an_agents_file_without_touching_the_rest(tmp_path: Path) -> None:
    entries = [new_entry("Name: be\nbrief.", kind="rule"), new_entry("Second.", kind="rule")]
    written = write_entries(entries, "tfgrpo-yaml", AGENT)
    assert written.startswith(AGENT[: AGENT.index("    [G0]")])
    assert "    [G0]. Name: be brief.\n    [G1]. Second.\n  tools: []\n" in written
    assert (
        write_entries(entries, "tfgrpo-yaml") == "instructions: |\n  [G0]. Name: be brief.\n  [G1]. Second.\n"
    )


def test_lines_between_the_experiences_of_an_agents_file_are_kept() -> None:
    split = AGENT.replace("    [G1]", "    Mind these too:\n    [G1]")
    written = write_entries([new_entry("Only one.", kind="rule")], "tfgrpo-yaml", split)
    assert "    [G0]. Only one.\n    Mind these too:\n  tools: []\n" in written


def test_a_format_without_worked_answers_gives_no_exemplars(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("- Sing.\n")
    with pytest.raises(UsageError, match="no worked answers"):
        read_entries(tmp_path / "a.txt", kind="exemplar")


def test_a_playbooks_counts_are_tags_and_its_sections_are_kept(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text(PLAYBOOK)
    entries, _ = read_entries(tmp_path / "p.md")
    assert entries[0].tags == ("section:STRATEGIES & INSIGHTS", "helpful=3", "harmful=1")
    assert [entry.id for entry in entries] == ["str-00001", "str-00002", "mis-00001"]


def test_memories_are_read_with_and_without_results_around_them(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(MEMORIES)
    entries, _ = read_entries(tmp_path / "m.json", kind="fact")
    assert [(e.id, e.text, e.tags, e.kind) for e in entries] == [
        ("m1", "Likes tea.", ("food",), "fact"),
        ("m2", "Lives in Ghent.", (), "fact"),
    ]
    (tmp_path / "m.json").write_text(json.dumps(json.loads(MEMORIES)["results"]))
    assert read_entries(tmp_path / "m.json", kind="fact")[0] == entries
    (tmp_path / "back.json").write_text(write_entries(entries, "mem0"))
    again = read_entries(tmp_path / "back.json", kind="fact")[0]
    assert [(e.id, e.text, e.tags) for e in again] == [(e.id, e.text, e.tags) for e in entries]


@pytest.mark.parametrize(
    ("format", "text", "complaint"),
    [
        ("tfgrpo", "{", "not JSON"),
        ("tfgrpo", "[]", "not an object of experiences"),
        ("tfgrpo", '{"G0": 3}', "'G0' is not an experience"),
        ("tfgrpo", '{"x": "y"}', "'x' is not an experience"),
        ("tfgrpo-yaml", "a: b\n", "no experiences"),
        ("ace", "# nothing\n", "no bullets"),
        ("ace", "[a] helpful=0 harmful=0 :: \n", "empty"),
        ("mem0", "3", "not a list of memories"),
        ("mem0", "[3]", "not a memory"),
    ],
)
def test_a_file_of_the_wrong_format_gets_one_sentence(
    tmp_path: Path, format: str, text: str, complaint: str
) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(MalformedError, match=complaint) as caught:
        read_entries(tmp_path / "f", format=format)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif("HEEDFUL_DATA" not in os.environ, reason="the released files are not part of heedful")
@pytest.mark.parametrize("name", ["math_released_experiences.json", "web_released_experiences.json"])
def test_the_released_experiences_come_back_byte_for_byte(name: str) -> None:
    file = Path(os.environ["HEEDFUL_DATA"]) / "tfgrpo" / name
    entries, _ = read_entries(file)
    assert write_entries(entries, "tfgrpo").encode() == file.read_bytes()


def test_a_mem0_list_keeps_its_users_its_metadata_and_its_dates(tmp_path: Path) -> None:
    memory = {
        "id": "m1",
        "memory": "Ana likes tea.",
        "user_id": "ana",
        "agent_id": "shop",
        "metadata": {"room": 3, "note": "a=b"},
        "categories": ["drinks"],
        "expiration_date": "2027-01-01",
    }
    (tmp_path / "list.json").write_text(json.dumps([memory]))
    [entry], _ = read_entries(tmp_path / "list.json", kind="fact")
    assert entry.scope == {"user": "ana", "agent": "shop"}
    assert entry.tags == ("drinks", "metadata.room=3", 'metadata.note="a=b"')
    assert entry.valid_until == datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    (tmp_path / "back.json").write_text(write_entries([entry], "mem0"))
    assert read_entries(tmp_path / "back.json", kind="fact")[0] == [replace(entry, source="back.json")]


def test_json_lines_keep_scope_and_times_and_name_a_wrong_time(tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"
    entry = new_entry(
        "Ana likes tea.", kind="fact", scope={"user": "ana"}, valid_from=1.2345, valid_until=9e9
    )
    file.write_text(write_entries([entry], "jsonl"))
    assert read_entries(file)[0] == [replace(entry, source="bank.jsonl")]
    file.write_text('{"text": "x", "valid_until": "soon"}')
    with pytest.raises(MalformedError, match="'soon' is not a time"):
        read_entries(file)
    file.write_text('{"text": "x", "valid_from": 5, "valid_until": 5}')
    with pytest.raises(MalformedError, match="never valid"):
        read_entries(file)


def test_a_tag_that_only_looks_like_metadata_is_exported_as_text(tmp_path: Path) -> None:
    entry = new_entry("Tea.", kind="fact", tags=["metadata.note=not JSON"])
    assert json.loads(write_entries([entry], "mem0"))["results"][0]["metadata"] == {"note": "not JSON"}


def test_a_long_file_is_read_in_parts_with_the_line_numbers_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "PART", 3)
    file = tmp_path / "long.jsonl"
    written = [f'{{"text": "Rule {n}.", "id": "r{n}"}}' for n in range(7)]
    file.write_text("\n".join([*written[:5], "", "broken", written[1], *written[5:]]))
    scanned = formats.scan_entries(file, skip_bad=True)
    parts = [[entry.id for entry in part] for part in scanned.parts()]
    assert parts == [["r0", "r1", "r2"], ["r3", "r4"], ["r5"], ["r6"]]
    assert [number for number, _ in scanned.bad] == [7, 8]
    assert "line 2" in scanned.bad[1][1]
    assert scanned.count == 7


def test_two_lines_with_one_short_id_are_two_entries(tmp_path: Path) -> None:
    first, second = (entry.text for entry in SAME_SHORT_ID)
    file = tmp_path / "notes.txt"
    file.write_text(f"{first}\n{second}\n")
    entries, bad = read_entries(file)
    assert ([entry.text for entry in entries], bad) == ([first, second], [])
    assert len({entry.id for entry in entries}) == 2
    file.write_text(f"{first}\n{second}\n{first}\n")
    with pytest.raises(MalformedError, match="line 3: the same entry"):
        read_entries(file)
