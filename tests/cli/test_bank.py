import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from heedful import Database, UsageError
from heedful.cli.resources import index_above
from heedful.memory.stored import INDEX_ABOVE
from heedful.memory.vectors import VectorCache
from tests.cli.conftest import Heedful

RULES = '{"id": "ship", "text": "Ship before noon."}\n{"id": "sing", "text": "Sing.", "kind": "fact"}\n'


@pytest.fixture
def rules(tmp_path: Path) -> str:
    file = tmp_path / "rules.jsonl"
    file.write_text(RULES)
    return str(file)


def test_a_file_is_imported_listed_and_exported_again(heedful: Heedful, rules: str, tmp_path: Path) -> None:
    done = heedful("bank", "import", rules, "--bank", "b", "--json")
    assert (done.code, done.json["new"]) == (0, 2)
    assert heedful("bank", "import", rules, "--bank", "b", "--json").json["new"] == 0
    assert "Ship before noon." in heedful("bank", "ls", "--bank", "b").out
    out = tmp_path / "out.jsonl"
    assert heedful("bank", "export", str(out), "--bank", "b").code == 0
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["ship", "sing"]
    assert heedful("bank", "export", "--bank", "b").out == out.read_text()
    out.unlink()
    told = heedful("bank", "export", str(out), "--bank", "b", "--json")
    assert told.json == {"bank": "b", "written": 2, "file": str(out)}
    assert heedful("bank", "export", "--bank", "b").out == out.read_text()
    assert (
        heedful("bank", "export", "--bank", "b", "--format", "text").out == "- Ship before noon.\n- Sing.\n"
    )


def test_a_bad_line_refuses_the_file_with_one_sentence_and_nothing_is_half_imported(
    heedful: Heedful, tmp_path: Path
) -> None:
    file = tmp_path / "rules.jsonl"
    file.write_text(RULES + '{"txet": "x"}\n')
    done = heedful("bank", "import", str(file), "--bank", "b")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("heedful: rules.jsonl was not imported: line 3")
    assert len(done.err.splitlines()) == 1
    assert heedful("bank", "ls", "--json").json == {"banks": {}}
    kept = heedful("bank", "import", str(file), "--bank", "b", "--skip-bad", "--json")
    assert (kept.code, kept.json["new"], kept.json["skipped"][0]["line"]) == (0, 2, 3)
    assert "line 3" in kept.err


def test_entries_are_retired_restored_and_protected_with_reasons(heedful: Heedful, rules: str) -> None:
    heedful("bank", "import", rules)
    assert heedful("bank", "retire", "ship", "--reason", "stale", "--json").json["state"] == "retired"
    assert [
        e["id"] for e in heedful("bank", "ls", "--state", "retired", "--json").json["banks"]["default"]
    ] == ["ship"]
    assert heedful("bank", "restore", "ship").out == "ship in bank default is now active\n"
    assert heedful("bank", "protect", "sh", "--json").json["state"] == "protected"
    refused = heedful("bank", "retire", "ship")
    assert (refused.code, refused.out) == (2, "")
    assert "protected" in refused.err
    shown = heedful("bank", "show", "ship")
    assert "stale" in shown.out
    assert [c["state"] for c in heedful("bank", "show", "ship", "--json").json["history"]] == [
        "retired",
        "active",
        "protected",
    ]


def test_adding_makes_an_entry_or_a_new_version_that_keeps_its_state(heedful: Heedful) -> None:
    assert heedful("bank", "add", "Ship before noon.", "--id", "ship", "--tag", "a", "--json").json[
        "tags"
    ] == ["a"]
    heedful("bank", "retire", "ship")
    again = heedful("bank", "add", "Ship before one.", "--id", "ship", "--json").json
    assert (again["state"], again["text"]) == ("retired", "Ship before one.")
    assert len(heedful("bank", "show", "ship", "--json").json["versions"]) == 2
    exemplar = heedful("bank", "add", "2 + 2?", "--kind", "exemplar")
    assert (exemplar.code, "response" in exemplar.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bank", "show", "x", "--bank", "nope"), "unknown bank 'nope'"),
        (("bank", "import", "missing.jsonl"), "cannot read missing.jsonl"),
        (("bank", "retire", "x"), "unknown bank 'default'"),
        (("why", "abc"), "not a recorded decision"),
        (("weights", "path", "gpt-9"), "unknown weights 'gpt-9'"),
        (("weights", "pull", "gpt-9"), "unknown weights 'gpt-9'"),
        (("probe", "not a url"), "is not a supported URL"),
        (("ask", "x", "--bank", "nope"), "unknown bank 'nope'"),
        (("ask", "x", "--url", "ftp://x"), "is not a supported URL"),
    ],
)
def test_a_users_mistake_gets_one_sentence_and_exit_code_2(
    heedful: Heedful, words: tuple[str, ...], complaint: str
) -> None:
    done = heedful(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("heedful: ")
    assert complaint in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_unknown_options_are_usage_errors(heedful: Heedful) -> None:
    assert heedful("bank", "ls", "--colour").code == 2
    assert heedful("sing").code == 2


def test_export_into_a_file_of_another_tool_keeps_its_format_and_leaves_out_what_is_retired(
    heedful: Heedful, tmp_path: Path
) -> None:
    file = tmp_path / "playbook.md"
    file.write_text("## HINTS\n[a] helpful=0 harmful=0 :: Count twice.\n[b] helpful=0 harmful=0 :: Guess.\n")
    assert heedful("bank", "import", str(file), "--bank", "p").code == 0
    heedful("bank", "retire", "b", "--bank", "p")
    assert heedful("bank", "export", str(file), "--bank", "p").code == 0
    assert file.read_text() == "## HINTS\n[a] helpful=0 harmful=0 :: Count twice.\n"


def test_many_entries_are_embedded_at_import_unless_that_is_declined(
    heedful: Heedful, minilm: Path, tmp_path: Path
) -> None:
    file, stores = tmp_path / "many.txt", [tmp_path / "now.db", tmp_path / "later.db"]
    file.write_text("".join(f"Parcel {n} is late.\n" for n in range(70)))
    now = heedful("bank", "import", str(file), "--store", str(stores[0]))
    later = heedful("bank", "import", str(file), "--store", str(stores[1]), "--no-embed")
    assert now.err.splitlines() == ["embedding: 70 of 70 entries"]
    assert (later.code, later.err) == (0, "")
    texts = [f"Parcel {n} is late." for n in range(70)]
    assert [VectorCache(Database(store)).missing(texts) for store in stores] == [0, 70]
    again = heedful("bank", "import", str(file), "--store", str(stores[0]))
    assert (again.code, again.err) == (0, ""), "vectors are made once"


def test_a_long_list_is_printed_one_entry_per_line(heedful: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    rows = [{"id": f"e{n}", "text": f"Line {n}\nand [more] " + "words " * 30} for n in range(1000)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    heedful("bank", "import", str(file), "--bank", "b", "--no-embed")
    title, head, *lines = heedful("bank", "ls", "--bank", "b").out.splitlines()
    assert (title, head.split()) == ("b: 1000 entries", ["id", "kind", "state", "text"])
    assert len(lines) == 1000
    assert lines[7].startswith("e7    rule  active  Line 7 and [more] words")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("ask", "q", "--limit", "0"), "Invalid value for '--limit': it must be at least 1"),
        (("ask", "q", "--threads", "100000"), "Invalid value for '--threads': it must be at most 512"),
        (("ask", "q", "--limit", "x"), "Invalid value for '--limit': it must be a whole number"),
        (("ask", "q", "--margin", "x"), "Invalid value for '--margin': it must be a number"),
        (("ask", "q", "--timeout", "nan"), "Invalid value for '--timeout': it must be at least 0.1"),
        (("ask", "q", "--arm", "bogus"), "Invalid value for '--arm': 'bogus' is not one of 'never'"),
        (("ask", "q", "--bogus"), "No such option: --bogus"),
        (("why", "--store"), "requires an argument"),
        (("bogus",), "No such command 'bogus'"),
    ],
)
def test_a_wrong_option_is_explained_without_the_words_of_a_library(
    heedful: Heedful, words: tuple[str, ...], complaint: str
) -> None:
    done = heedful(*words)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err.splitlines()[-1]


def test_entries_that_come_back_after_a_purge_are_said_to_be_retired(heedful: Heedful, rules: str) -> None:
    assert heedful("bank", "import", rules, "--bank", "b").err == ""
    heedful("purge", "--bank", "b")
    again = heedful("bank", "import", rules, "--bank", "b")
    assert again.out == "2 entries added to bank b\n"
    assert "2 entries of these will not be recalled (retired: purged)" in again.err
    assert "heedful bank restore ship --bank b" in again.err
    assert heedful("bank", "import", rules, "--bank", "b", "--json").json["idle"] == 2
    added = heedful("bank", "add", "Ship at noon.", "--id", "ship", "--bank", "b")
    assert "1 entry of these will not be recalled (retired: purged)" in added.err
    heedful("bank", "restore", "ship", "--bank", "b")
    assert heedful("bank", "add", "Ship at one.", "--id", "ship", "--bank", "b").err == ""


KILLED_AFTER_TWO_PARTS = """
import os, signal, sys
from itertools import count
from heedful.memory import formats, sqlite
formats.PART = 100
puts, put = count(), sqlite.SqliteStore.put
async def dying(self, bank, entries):
    if next(puts) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return await put(self, bank, entries)
sqlite.SqliteStore.put = dying
from heedful.cli.main import run
sys.argv = ["heedful", "bank", "import", sys.argv[1], "--bank", "b", "--no-embed", "--store", sys.argv[2]]
run()
"""


def test_a_long_import_that_is_killed_goes_on_where_it_stopped(heedful: Heedful, tmp_path: Path) -> None:
    file, store = tmp_path / "long.txt", tmp_path / "s.db"
    file.write_text("".join(f"- Rule number {n}.\n" for n in range(450)))
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_TWO_PARTS, str(file), str(store)])
    assert killed.returncode == -signal.SIGKILL
    again = heedful("bank", "import", str(file), "--bank", "b", "--no-embed", "--store", str(store), "--json")
    assert (again.json["read"], again.json["new"]) == (450, 250)


def test_the_size_from_which_a_bank_has_an_index_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert index_above() == INDEX_ABOVE
    monkeypatch.setenv("HEEDFUL_INDEX_ABOVE", "7")
    assert index_above() == 7
    monkeypatch.setenv("HEEDFUL_INDEX_ABOVE", "many")
    with pytest.raises(UsageError, match="a number of entries such as 50000"):
        index_above()
