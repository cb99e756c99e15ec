"""Java that is missing, dies or hangs."""

import pytest

from heedful.environments.java import java_faults, require_java
from heedful.errors import MissingError, UsageError, WorldError


def test_missing_java_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingError, match="apt-get install -y default-jre-headless") as refused:
        require_java()
    assert refused.value.exit_code == 3


def test_a_failure_of_the_java_side_becomes_one_sentence() -> None:
    with pytest.raises(WorldError, match=r"^Chess failed: OSError: first$"), java_faults("Chess"):
        raise OSError("first\nsecond")
    with pytest.raises(UsageError, match="mine"), java_faults("Chess"):
        raise UsageError("mine")
