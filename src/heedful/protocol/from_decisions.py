"""A study from graded decisions: real traffic becomes its fit side, with the passes that were recorded."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.benchmarks.items import normal_question
from heedful.errors import UsageError
from heedful.memory.formats import write_entries
from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.line_file import has_lines
from heedful.protocol.study import USUAL_SIGNALS
from heedful.protocol.workspace import Workspace, write_text
from heedful.records import Decision, Feedback, PassRecord, SignalCost
from heedful.stages.confidence import SIGNALS
from heedful.types import NO_USAGE, Entry, Spec, Usage, digest_of

LEAST = 4
"""Fewer questions do not make a study with two sides."""
SETTINGS = ("recall", "threshold", "placement", "limit", "heading")
"""The settings of a memory source that a study file repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedDecision:
    """A decision whose right answer is known."""

    decision: Decision
    answer: Feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCount:
    """What became of the graded decisions."""

    fit: int
    test: int
    other_settings: int
    """Made with another model, prompt, metric or source settings than the newest decision."""
    repeated: int
    """Older decisions about the same question."""
    passes: int
    """Recorded passes of the fit side, which need not be decoded again."""
    banks: tuple[str, ...]


def draft_study(
    folder: Path,
    name: str,
    graded: Sequence[GradedDecision],
    entries: Callable[[str], Sequence[Entry]],
    test_share: float,
) -> DraftCount:
    """Write a study into a new folder: the newest decisions are its test side, the others its fit side.

    The recorded passes of the fit side go to its ledger; the test side is decoded when the study opens it.
    """
    space = Workspace(folder)
    if space.study.exists() or has_lines(space.ledger):
        raise UsageError(f"{folder} holds a study already; choose another folder with --out")
    usable = [one for one in graded if _plain(one)]
    if not usable:
        raise UsageError(
            "no decision with a known answer can become a question: heedful feedback DECISION --answer TEXT"
        )
    newest = max(usable, key=lambda one: one.decision.at)
    alike = [one for one in usable if _key(one) == _key(newest)]
    rows = _once(alike)
    tests = round(len(rows) * test_share)
    if len(rows) < LEAST or not 0 < tests < len(rows):
        raise UsageError(
            f"{len(rows)} questions with a known answer and the same settings are too few for a study of two "
            f"sides; give feedback with --answer TEXT on more decisions"
        )
    fit, test = rows[:-tests], rows[-tests:]
    banks = _memory_sources(newest.decision)
    _write_files(space, name, newest, banks, entries, {"fit": fit, "test": test})
    passes = [row for one in fit for row in _passes(one, banks)]
    with Ledger(space.ledger) as ledger:
        for row in passes:
            ledger.append(row)
    return DraftCount(
        fit=len(fit),
        test=len(test),
        other_settings=len(graded) - len(alike),
        repeated=len(alike) - len(rows),
        passes=len(passes),
        banks=tuple(banks),
    )


def _plain(graded: GradedDecision) -> bool:
    """Whether a study's question file can hold the task."""
    task = graded.decision.task
    special = task.earlier or task.tools or task.schema or task.choices or task.scope or task.query
    return bool(task.question and graded.answer.value and not special)


def _key(graded: GradedDecision) -> str:
    """Everything that all questions of a study share."""
    decision, task = graded.decision, graded.decision.task
    return digest_of(
        {
            "task": [task.instructions, task.answer_pattern, task.max_tokens],
            "model": [decision.model.name, decision.model.endpoint, decision.model.fingerprint],
            "sources": {bank: _settings(spec) for bank, (_, spec) in _memory_sources(decision).items()},
            "metric": graded.answer.metric,
        }
    )


def _memory_sources(decision: Decision) -> dict[str, tuple[str, Spec]]:
    """By bank: the name of the source that recalled from it, and its settings."""
    specs = decision.sources.items()
    return {str(spec["bank"]): (name, spec) for name, spec in specs if spec.get("kind") == "memory"}


def _settings(spec: Spec) -> dict[str, object]:
    return {key: spec[key] for key in SETTINGS if key in spec}


def _once(graded: Sequence[GradedDecision]) -> list[GradedDecision]:
    """The newest decision about each question, oldest first."""
    ordered = sorted(graded, key=lambda one: one.decision.at)
    newest = {normal_question(one.decision.task.question): one for one in ordered}
    return sorted(newest.values(), key=lambda one: one.decision.at)


def _passes(graded: GradedDecision, banks: Mapping[str, tuple[str, Spec]]) -> list[Pass]:
    """The recorded passes without memory and with a bank, under the names that the study gives them."""
    names = {"none": "none", **{source: bank for bank, (source, _) in banks.items()}}
    pairs = zip(_measured(graded.decision), graded.answer.grades, strict=True)
    kept: dict[str, tuple[PassRecord, bool]] = {}
    for record, right in pairs:
        if record.source in names and record.status != "failed":
            kept.setdefault(names[record.source], (record, right))
    return [
        Pass(
            side="fit", seed=0, task=graded.decision.task.id, record=replace(record, source=name), right=right
        )
        for name, (record, right) in kept.items()
    ]


def _asked_signal(decision: Decision) -> str:
    """The signal that asked questions of its own; empty if the decision used none."""
    policy = decision.policy
    asked = policy.signal in SIGNALS and SIGNALS[policy.signal].extra_calls and not policy.calibrators
    return policy.signal if asked else ""


def _measured(decision: Decision) -> list[PassRecord]:
    """The passes with the confidence by a signal that asked questions of its own, as a ledger holds it.

    A decision knows only the sum of the tokens of these questions, so each pass gets an equal share.
    """
    name = _asked_signal(decision)
    confidences = (decision.confidence, *(candidate.confidence for candidate in decision.candidates))
    count = sum(value is not None for value in confidences)
    if not name or not count:
        return list(decision.passes)
    cost = SignalCost(calls=SIGNALS[name].extra_calls, usage=_usage_besides_passes(decision, count))
    return [
        record
        if value is None
        else replace(record, signals={**record.signals, name: value}, signal_costs={name: cost})
        for record, value in zip(decision.passes, confidences, strict=True)
    ]


def _usage_besides_passes(decision: Decision, shares: int) -> Usage:
    """One of equal shares of the tokens that no pass used."""
    used = sum((record.usage for record in decision.passes), NO_USAGE)

    def share(field: str) -> int:
        return max(0, int(getattr(decision.usage, field)) - int(getattr(used, field))) // shares

    return Usage(**{field: share(field) for field in ("prompt_tokens", "completion_tokens", "cached_tokens")})


def _write_files(
    space: Workspace,
    name: str,
    newest: GradedDecision,
    banks: Mapping[str, tuple[str, Spec]],
    entries: Callable[[str], Sequence[Entry]],
    sides: Mapping[str, Sequence[GradedDecision]],
) -> None:
    for bank in banks:
        held = entries(bank)
        if not held:
            raise UsageError(
                f"the store has no bank {bank!r}, from which these decisions recalled: import it again"
            )
        write_text(space.folder / f"{bank}.jsonl", write_entries(held, "jsonl"))
    for side, rows in sides.items():
        lines = [
            {
                "id": one.decision.task.id,
                "question": one.decision.task.question,
                "answer": one.answer.value,
            }
            for one in rows
        ]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        write_text(space.folder / f"{side}.jsonl", text)
    write_text(space.study, "\n".join(_study_lines(name, newest, banks)) + "\n")


def _study_lines(name: str, newest: GradedDecision, banks: Mapping[str, tuple[str, Spec]]) -> list[str]:
    task, model = newest.decision.task, newest.decision.model
    questions: dict[str, object] = {
        "fit": "fit.jsonl",
        "test": "test.jsonl",
        "metric": newest.answer.metric,
        "instructions": task.instructions,
        "answer_pattern": task.answer_pattern,
        "max_tokens": task.max_tokens,
    }
    embedded = {"weights": model.name}
    at_url = {"url": model.endpoint, "model": model.name}
    lines = [f"name = {_toml(name)}", "", *_table("questions", questions)]
    lines += _table("model", embedded if model.endpoint == "embedded" else at_url)
    if asked := _asked_signal(newest.decision):
        free = [name for name in USUAL_SIGNALS if name in newest.decision.first.signals]
        lines += _table("fit", {"signals": [asked, *free]})
    for bank, (_, spec) in banks.items():
        lines += _table(f"sources.{_toml(bank)}", {"bank": f"{bank}.jsonl", **_settings(spec)})
    return lines


def _table(name: str, values: Mapping[str, object]) -> list[str]:
    rows = [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]
    return [f"[{name}]", *rows, ""]


def _toml(value: object) -> str:
    """A text, a number or a list of them in TOML, which writes them as JSON does."""
    return json.dumps(value, ensure_ascii=False)
