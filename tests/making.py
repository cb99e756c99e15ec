"""Small values for tests."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.models.scripted import Reply, ScriptedModel, spoken
from heedful.protocol.ledger import Pass
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.workflow import record
from heedful.protocol.workspace import Workspace, open_workspace
from heedful.records import PassRecord
from heedful.types import Audience, Decode, Entry, Prompt, Recall, Side, Spec, Task, TreeEnsemble

PreparedStudy = tuple[Workspace, StudySetup]
RecordedStudy = tuple[Workspace, StudySetup, ScriptedModel]
"""With the model that decoded its passes."""


def decode(text: str, logprob: float = -0.5, answer: str | None = None) -> Decode:
    said = text.strip() if answer is None else answer
    start = text.find(said)
    return Decode(
        text=text,
        answer=said,
        span=(start, start + len(said)) if said else None,
        tokens=spoken(text, logprob) if text else (),
        model="test",
    )


def task(question: str = "What is it?", **settings: object) -> Task:
    return Task(question=question, id="t", **settings)  # type: ignore[arg-type]


def reply_of(model: ScriptedModel, prompt: Prompt) -> Reply:
    """The reply of a model whose script is a function, without a pass of it."""
    assert callable(model.script)
    return model.script(prompt)


def ledger_row(
    source: str, task: str, *, right: bool = False, side: Side = "fit", seed: int = 0, **record: Any
) -> Pass:
    """A row of a ledger, decoded unless its record says otherwise."""
    fields = {"prompt": "p", "model": "m", "status": "decoded", **record}
    return Pass(side=side, seed=seed, task=task, right=right, record=PassRecord(source=source, **fields))


def record_study(
    folder: Path,
    study: str,
    files: Mapping[str, Sequence[Mapping[str, object]]],
    reply: Callable[[Prompt], Reply],
) -> RecordedStudy:
    """A study with these questions and entries by the name of their file, its fit side recorded."""
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "s.toml").write_text(study)
    space = open_workspace(folder / "s.toml", folder / "out")
    setup = prepare(space.study, None)
    model = ScriptedModel(script=reply)
    asyncio.run(record(space, setup, model, "fit", lambda progress: None))
    return space, setup, model


def stump(features: tuple[str, ...], name: str, at: float, low: float, high: float) -> TreeEnsemble:
    """One split: `low` up to the threshold, `high` above."""
    return TreeEnsemble(
        features=features,
        roots=(0,),
        feature=(features.index(name), -1, -1),
        threshold=(at, 0.0, 0.0),
        left=(1, 0, 0),
        right=(2, 0, 0),
        value=(0.0, low, high),
    )


class FixedBank:
    """Recalls the same entries for every question, or raises what it is given."""

    name = "fixed"
    digest = "fixed"

    def __init__(self, entries: Sequence[Entry], error: Exception | None = None) -> None:
        self._entries = tuple(entries)
        self._error = error

    @property
    def spec(self) -> Spec:
        return {"bank": self.name, "digest": self.digest, "recall": "fixed"}

    def entries(self) -> Sequence[Entry]:
        return self._entries

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        if self._error is not None:
            raise self._error
        return tuple(Recall(entry=entry, score=1.0) for entry in self._entries[:limit])
