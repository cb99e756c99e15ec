"""What an extra brings, and what is said without it."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from heedful.errors import MissingError
from heedful.extras import EXTRAS, IMPORTED_AS, absent, importing, require

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


def without(monkeypatch: pytest.MonkeyPatch, *extras: str) -> None:
    """Hide the packages of these extras from `import`."""
    for package in (package for extra in extras for package in EXTRAS[extra]):
        monkeypatch.setitem(sys.modules, IMPORTED_AS.get(package, package), None)


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_lists_what_the_project_declares(extra: str) -> None:
    declared = {re.split("[<>=]", one)[0] for one in PROJECT["optional-dependencies"][extra]}
    assert set(EXTRAS[extra]) == declared


def test_an_installed_extra_is_not_refused() -> None:
    require("embedded", "study")
    assert absent("study") == []


def test_a_missing_extra_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "study")
    with pytest.raises(MissingError) as refused:
        require("embedded", "study", instead="x needs no extra")
    said = (
        "not installed: scipy, matplotlib, scikit-learn; run: pip install 'heedful[study]' (x needs no extra)"
    )
    assert (str(refused.value), refused.value.exit_code) == (said, 3)


def test_an_import_that_fails_names_the_extra_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "study")
    with pytest.raises(MissingError, match=r"pip install 'heedful\[study\]'"), importing("study"):
        import scipy  # noqa: F401


def test_an_import_that_fails_inside_an_installed_package_stays_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), importing("study"):
        import no_such_package  # type: ignore[import-not-found] # noqa: F401
