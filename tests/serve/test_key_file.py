"""The file of keys."""

from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.serve.callers import key_hash
from heedful.serve.key_file import KeyEntry, key_table, read_keys, unserved_rights

HASH = key_hash("k")


def test_a_table_is_read_as_it_was_made(tmp_path: Path) -> None:
    entry = KeyEntry(name="bot-1", sha256=HASH, policies=("a",), scopes=("user=*",), admin=True, at_once=3)
    file = tmp_path / "keys.toml"
    file.write_text(f"{key_table(entry)}\n\n{key_table(KeyEntry(name='b', sha256=key_hash('b')))}\n")
    first, second = read_keys(file)
    rights = first.caller.rights
    assert (first.hash, first.caller.name, second.caller.name) == (HASH, "bot-1", "b")
    assert (rights.policies, rights.banks, rights.scopes) == (("a",), ("*",), ("user=*",))
    assert (rights.admin, rights.at_once) == (True, 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no key"),
        ("key = []", "there is no key"),
        ("[[key]]\nname = 'x'", "not a file of keys"),
        ("[[key]]\nname = 'x'\nsha256 = 'short'", "is not a sha256"),
        (f"[[key]]\nname = 'x y'\nsha256 = '{HASH}'", "is not usable"),
        (f"[[key]]\nname = 'x'\nsha256 = '{HASH}'\nright = 1", "not a file of keys"),
        (f"[[key]]\nname = 'x'\nsha256 = '{HASH}'\nat_once = 0", "at_once"),
        (f"[[key]]\nname = 'x'\nsha256 = '{HASH}'\nscopes = ['user']", "is not KEY=VALUE"),
        (f"[[key]]\nname = 'x'\nsha256 = '{HASH}'\n" * 2, "occurs twice"),
    ],
)
def test_an_unusable_file_is_refused_with_its_problem(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=problem):
        read_keys(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the keys"):
        read_keys(tmp_path / "none.toml")


def test_what_keys_name_but_nobody_serves_is_named_once_per_caller(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    tables = [
        KeyEntry(name="ann", sha256=key_hash("1"), policies=("gone", "desk"), banks=("notes", "typo")),
        KeyEntry(name="ann", sha256=key_hash("2"), policies=("gone",)),
        KeyEntry(name="bob", sha256=key_hash("3")),
    ]
    file.write_text("\n".join(map(key_table, tables)))
    assert unserved_rights(read_keys(file), policies={"desk"}, banks={"notes"}) == [
        "the key of ann names the policy gone, which is not served; served: desk",
        "the key of ann names the bank typo, which is not served; served: notes",
    ]
