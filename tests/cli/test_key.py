"""`heedful key new`."""

from pathlib import Path

import pytest

from heedful.serve.callers import key_hash
from heedful.serve.key_file import read_keys
from tests.cli.conftest import Heedful


def test_a_key_is_shown_once_and_only_its_hash_is_in_the_table(heedful: Heedful, tmp_path: Path) -> None:
    done = heedful("key", "new", "bot", "--policy", "support", "--scope", "user=*", "--admin", "--json")
    key, table = done.json["key"], done.json["table"]
    (tmp_path / "keys.toml").write_text(table)
    (read,) = read_keys(tmp_path / "keys.toml")
    assert (read.hash, read.caller.name, read.caller.rights.admin) == (key_hash(key), "bot", True)
    assert (read.caller.rights.policies, read.caller.rights.scopes) == (("support",), ("user=*",))
    assert key not in table


def test_stdout_is_the_table_so_that_it_can_be_appended_to_a_file(heedful: Heedful) -> None:
    done = heedful("key", "new", "bot")
    assert done.out.startswith('[[key]]\nname = "bot"\n')
    assert "shown only now: hk-" in done.err


def test_an_unusable_name_or_scope_is_refused(heedful: Heedful) -> None:
    assert heedful("key", "new", "a b").code == 2
    assert heedful("key", "new", "a", "--scope", "user").code == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--scope", "caller=x"), "has no effect, because the server sets caller to the key's name"),
        (("--scope", "caller=*"), "has no effect, because the server sets caller to the key's name"),
        (("--scope", "=x"), "is not KEY=VALUE"),
        (("--scope", "user="), "is not KEY=VALUE"),
        (("--bank", ""), "a bank of 'a' has an empty name"),
        (("--policy", " "), "a policy of 'a' has an empty name"),
    ],
)
def test_rights_without_effect_are_refused_in_one_sentence(
    words: tuple[str, ...], problem: str, heedful: Heedful
) -> None:
    done = heedful("key", "new", "a", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert problem in done.err
