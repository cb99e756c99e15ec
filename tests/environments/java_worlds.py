"""What tests with a Java world need."""

import shutil
from importlib.util import find_spec

import pytest

needs_java = pytest.mark.skipif(
    shutil.which("java") is None
    or find_spec("scienceworld") is None
    or find_spec("textworld_express") is None,
    reason="needs Java and the extra agents",
)
