"""Environments by name."""

import pytest

from heedful.environments import EnvironmentOptions, make_environment
from heedful.errors import UsageError


def test_an_unknown_environment_is_named_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match="webshop, scienceworld, textworld_express"):
        make_environment("chess", EnvironmentOptions())


@pytest.mark.parametrize("name", ["webshop", "scienceworld", "textworld_express"])
def test_an_option_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"the options of the environment {name} are wrong"):
        make_environment(name, EnvironmentOptions(options={"colour": "red"}))
