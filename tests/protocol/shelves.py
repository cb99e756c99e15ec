"""A study about numbered shelves, and a scripted model that knows some of them."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from heedful import (
    ScriptedModel,
)
from heedful.models.scripted import Reply
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import fit_study, lock_study, record
from heedful.protocol.workspace import open_workspace
from heedful.types import Prompt
from tests.making import PreparedStudy

ROWS = 60
"""Questions on each side."""
STUDY = """
name = "desk"
[questions]
fit = "fit.jsonl"
test = "test.jsonl"
metric = "text"
[sources.notes]
bank = "notes.txt"
recall = "bm25"
[sources.other]
bank = "notes.txt"
placement = "before"
recall = "bm25"
[sources.retry]
kind = "retry"
[sources.reflect]
kind = "reflect"
[sources.vote]
kind = "vote"
[sources.verify]
kind = "verify"
[fit]
families = ["gate", "choose", "agree", "cascade", "dual"]
signals = ["mean", "min"]
"""


QUICK = STUDY.replace(
    'families = ["gate", "choose", "agree", "cascade", "dual"]\nsignals = ["mean", "min"]',
    'signals = ["mean"]\nfamilies = ["gate", "choose"]\ncalibrated = false\nfolds = 3',
)


def written(folder: Path, text: str) -> Path:
    """Questions about numbered shelves; every note tells one shelf's content."""
    for side, start in (("fit", 0), ("test", 1000)):
        shelves = range(start, start + ROWS)
        rows = [
            {"id": f"s{n}", "question": f"What is on shelf {n}?", "answer": f"item{n % 7}"} for n in shelves
        ]
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = [f"Shelf {n} holds item{n % 7}." for n in (*range(ROWS), *range(1000, 1000 + ROWS))]
    (folder / "notes.txt").write_text("\n".join(notes))
    (folder / "desk.toml").write_text(text)
    return folder / "desk.toml"


def shelf_model(**settings: Any) -> ScriptedModel:
    """Right with the note and now and then without; sure when right, mostly."""

    def reply(prompt: Prompt) -> Reply:
        text = " ".join(m.content for m in prompt.messages if m.role == "user")
        shelf = int("".join(c for c in text.partition("shelf ")[2].partition("?")[0] if c.isdigit()))
        draw = random.Random(f"{shelf} {'holds' in text} {prompt.temperature}")
        right = draw.random() < (0.9 if f"Shelf {shelf} holds" in text else 0.4)
        if "correct?" in prompt.messages[-1].content:
            return "yes" if right else "no"
        return (f"item{shelf % 7}" if right else "item9", -0.2 - 0.5 * draw.random() - 0.4 * (not right))

    return ScriptedModel(script=reply, **settings)


def nobody(progress: object) -> None:
    pass


def through_lock(file: Path, model: ScriptedModel) -> PreparedStudy:
    space = open_workspace(file, file.parent / "out")
    setup = prepare(space.study, None)
    asyncio.run(record(space, setup, model, "fit", nobody))
    fit_study(space, setup)
    asyncio.run(lock_study(space, setup, model))
    return space, setup
