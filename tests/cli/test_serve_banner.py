"""What `heedful serve` says at its start."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.cli.test_serve import shelves, started
from tests.faulty import FaultyServer


def banner_of(folder: Path, *words: str) -> str:
    with (
        FaultyServer(shelves) as upstream,
        started(folder, "--upstream", upstream.url, "--recall", "bm25", *words) as server,
    ):
        return "".join(server.banner).replace(upstream.url, "UPSTREAM")


def tried_model(banner: str) -> str:
    """The model in the command that the banner suggests."""
    return str(json.loads(shlex.split(banner.splitlines()[-1])[-1])["model"])


def test_a_model_is_named_only_if_the_operator_named_it(tmp_path: Path) -> None:
    unnamed, named = banner_of(tmp_path), banner_of(tmp_path, "--model", "it's")
    assert "in front of UPSTREAM\n" in unnamed
    assert "in front of it's at UPSTREAM\n" in named
    assert (tried_model(unnamed), tried_model(named)) == ("any", "it's")


def test_the_default_store_is_made_silently_and_an_empty_bank_is_named(tmp_path: Path) -> None:
    banner = banner_of(tmp_path)
    assert "default has no entries yet: heedful bank import FILE --bank default fills it" in banner
    assert "there was no store" not in banner


@pytest.mark.parametrize("way", ["--store", "HEEDFUL_STORE"])
def test_a_named_store_that_did_not_exist_is_said_to_be_new(
    way: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "typo" / "x.db")
    if way == "HEEDFUL_STORE":
        monkeypatch.setenv(way, file)
    words = (way, file) if way == "--store" else ()
    first, second = (banner_of(tmp_path, *words) for _ in range(2))
    assert f"there was no store {file}: a new, empty one was made there" in first
    assert "there was no store" not in second


def test_a_bank_with_entries_is_not_called_empty(tmp_path: Path, heedful: Heedful) -> None:
    store = str(tmp_path / "s.db")
    heedful("bank", "add", "The desk opens at 7 am.", "--kind", "fact", "--store", store)
    assert "has no entries" not in banner_of(tmp_path, "--store", store)


def test_explore_is_confirmed(tmp_path: Path) -> None:
    banner = banner_of(tmp_path, "--canary", "0.5", "--explore", "0.05")
    assert "explore: for 5% of answers a fair coin decides" in banner
    assert "canary: 50% get the policy's answers" in banner


def test_a_promotion_is_confirmed(tmp_path: Path, heedful: Heedful) -> None:
    store = str(tmp_path / "s.db")
    heedful("bank", "add", "Every shelf holds nails.", "--kind", "fact", "--store", store)
    with FaultyServer(shelves) as upstream:
        words = ("--upstream", upstream.url, "--recall", "bm25", "--store", store)
        with started(tmp_path, *words, "--shadow") as server:
            id = server.ask("What is on shelf 3?").headers["x-heedful-decision"]
            assert server.send("POST", "/v1/feedback", {"decision": id, "answer": "item3"}).status == 200
        with started(tmp_path, *words, "--promote", "--harm-limit", "0.9999") as server:
            assert "promoted: the shadow decisions keep the harm within 99.99%" in "".join(server.banner)


def test_keys_that_name_what_is_not_served_are_named(tmp_path: Path, heedful: Heedful) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(heedful("key", "new", "ann", "--policy", "support", "--bank", "default").out)
    banner = banner_of(tmp_path, "--keys", str(keys))
    assert "the key of ann names the policy support, which is not served; served: default" in banner
    assert "names the bank" not in banner
