"""What commands remember of an endpoint."""

from pathlib import Path

import pytest

from heedful.models.chat import chat_model
from heedful.models.endpoints import endpoints_file, is_known, known_rejects, note_rejects
from heedful.models.schemes import ModelOptions

URL = "http://127.0.0.1:9/v1"


@pytest.mark.usefixtures("home")
def test_a_note_is_used_by_the_next_model_of_that_endpoint() -> None:
    assert not is_known(URL, "m")
    assert chat_model(ModelOptions(url=URL, model="m")).traits.logprobs
    note_rejects(URL, "m", {"logprobs", "temperature"})
    note_rejects(URL, "other", ())
    assert is_known(URL, "m")
    assert known_rejects(URL, "m") == {"logprobs", "temperature"}
    model = chat_model(ModelOptions(url="http://127.0.0.1:9/v1/", model="m"))
    assert (model.traits.logprobs, model.refused) == (False, frozenset({"logprobs", "temperature"}))
    assert chat_model(ModelOptions(url=URL, model="other")).traits.logprobs


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("content", ["not JSON", "[]", '{"http://127.0.0.1:9/v1 m": {"rejects": 3}}'])
def test_a_damaged_note_is_no_note(content: str) -> None:
    endpoints_file().parent.mkdir(parents=True)
    endpoints_file().write_text(content)
    assert known_rejects(URL, "m") == frozenset()
    note_rejects(URL, "m", {"seed"})
    assert known_rejects(URL, "m") == {"seed"}


def test_a_folder_that_cannot_be_written_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEEDFUL_HOME", str(tmp_path / "file" / "home"))
    note_rejects(URL, "m", {"seed"})
    assert known_rejects(URL, "m") == frozenset()
