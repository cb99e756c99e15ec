import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from heedful.cli.main import run


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Heedful = Callable[..., Done]
"""The command line, called with its words."""


@pytest.fixture
def heedful(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Heedful:
    """Runs the command line in this process, with a store of its own."""

    def call(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["heedful", *words])
        code = 0
        try:
            run()
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call
