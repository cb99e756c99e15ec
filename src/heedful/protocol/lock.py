"""The lock: everything that decides a test result, fixed before the test side is opened."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

import heedful.control
from heedful.benchmarks.items import items_digest
from heedful.benchmarks.metrics import metric_source
from heedful.errors import LockError
from heedful.ports import Model
from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.setting import Setting
from heedful.protocol.workspace import write_text
from heedful.stages.compose import first_prompt
from heedful.types import Item, Message, Prompt, Side, Traits, digest_of

DECIDING_CODE = (
    "types.py",
    "control.py",
    "stages",
    "sources",
    *(f"memory/{name}.py" for name in ("bank", "ranking", "lexical", "dense", "rerank", "embed", "vectors")),
    "benchmarks",
    *(f"protocol/{name}.py" for name in ("record", "table", "replay")),
)
"""The code on which recalls, answers, grades and decisions hang; a bank's digest holds its entries."""
PLANNED = (
    "accuracy of every arm with a 95% Wilson interval",
    "paired difference to the no-memory baseline with a 95% bootstrap interval over tasks",
    "exact two-sided McNemar test against the baseline",
    "helps, hurts, oracle, gap-close",
    "AUC of second-pass confidence for helps against hurts, per bank",
    "Platt scaling fitted on the fit side: ECE, Brier, NLL, raw and scaled",
)


CHOSE, LOCKED, OPENED, WENT_ON, RECORDED = (
    "chose a policy under a harm limit",
    "locked",
    "opened the test side",
    "went on recording the test side",
    "recorded the whole test side",
)
"""Events of a study's journal; the first comes before there is a lock."""
NOT_IN_EARLY_LOCKS = ("fit settings", "statistics")
"""Digests that the locks of the first published results do not hold."""
Probe = Mapping[str, Any]
"""How an endpoint's model writes: its reply to one question and how sure it was."""
PROBE = Prompt(messages=(Message(role="user", content="Tell me one thing about the sea."),), max_tokens=8)
_EMPTY = msgspec.to_builtins(
    Pass(side="fit", seed=0, source="", task="", prompt="", model="", status="nothing")
)
PROBE_TOLERANCE = 0.1
"""The same weights on another day differ by less than this in the mean log-prob of the reply."""


async def probe(model: Model) -> Probe | None:
    """A reply that stands for an endpoint's weights; None for weights at hand, which their digest tells."""
    if not model.traits.endpoint.startswith("http"):
        return None
    decode = await model.decode(PROBE)
    said = [token.logprob for token in decode.tokens]
    return {"text": decode.text, "mean": fmean(said) if said else 0.0}


def same_probe(one: Probe | None, other: Probe | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(one["text"] == other["text"] and abs(one["mean"] - other["mean"]) <= PROBE_TOLERANCE)


def make_lock(
    setting: Setting,
    model: Traits,
    probed: Probe | None,
    ledger: Ledger,
    fitted: Mapping[str, Any],
    choices: int,
    at: str,
) -> dict[str, Any]:
    """The lock of a fitted study; `fitted` is what `heedful study fit` wrote, after so many choices."""
    content = {
        "study": setting.study.name,
        "benchmark": setting.benchmark.name,
        "locked_at": at,
        "policy": fitted["policy"],
        "fit": {key: value for key, value in fitted.items() if key != "policy"},
        "model": {"name": model.name, "endpoint": model.endpoint, "probe": probed},
        "sources": {name: dict(source.spec) for name, source in setting.sources("test", 0).items()},
        "kinds": {name: settings.kind for name, settings in setting.study.sources.items()},
        "splits": {
            "fit": [item.id for item in setting.splits.fit],
            "test": [item.id for item in setting.splits.test],
            "pool": [item.id for item in setting.splits.pool],
        },
        "dropped": {name: list(ids) for name, ids in setting.dropped.items()},
        "seeds": list(setting.study.seeds),
        "choices": choices,
        "test_passes": len(_rows_of(ledger, "test")),
        "statistics": list(PLANNED),
        "notes": setting.study.notes,
        "digests": digests(setting, model, ledger, fitted["policy"]),
    }
    return {**content, "lock": digest_of(content)}


def digests(setting: Setting, model: Traits, ledger: Ledger, policy: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each thing that must not move."""
    splits = setting.splits
    sides: dict[str, Sequence[Item]] = {"fit": splits.fit, "test": splits.test, "pool": splits.pool}
    found = {f"data:{side}": items_digest(items) for side, items in sides.items()}
    found |= {f"bank:{name}": bank.digest for name, bank in setting.banks.items()}
    found |= {
        f"source:{name}": digest_of(dict(source.spec)) for name, source in setting.sources("test", 0).items()
    }
    tasks = [setting.benchmark.task(item) for item in (*splits.fit, *splits.test)]
    return {
        **found,
        "prompts": digest_of([first_prompt(task).digest for task in tasks]),
        "grading": digest_of([_grading(setting), [task.answer_pattern for task in tasks]]),
        "policy": digest_of(dict(policy)),
        "model": model.fingerprint,
        "seeds": digest_of(list(setting.study.seeds)),
        "fit settings": digest_of(msgspec.to_builtins(setting.study.fit)),
        "statistics": digest_of(list(PLANNED)),
        "fit passes": passes_digest(ledger, "fit"),
        "code": code_digest(),
    }


def _grading(setting: Setting) -> list[str]:
    """The metric of a person's own questions, with its code where that is theirs too."""
    if setting.study.questions is None:
        return []
    metric = setting.study.questions.metric
    return [metric, metric_source(metric, setting.folder)]


def moved(
    lock: Mapping[str, Any], setting: Setting, model: Traits, probed: Probe | None, ledger: Ledger
) -> list[str]:
    """The names of what is not as it was locked."""
    content = {key: value for key, value in lock.items() if key != "lock"}
    names = [] if digest_of(content) == lock.get("lock") else ["the lock itself"]
    if not all(isinstance(lock.get(part), dict) for part in ("model", "policy", "digests")):
        return ["the lock itself"]
    if not same_probe(lock["model"].get("probe"), probed):
        names.append("the endpoint's replies")
    locked, now = lock["digests"], digests(setting, model, ledger, lock["policy"])
    if has_fit_passes(locked, ledger):
        now["fit passes"] = locked["fit passes"]
    missing = {name for name in NOT_IN_EARLY_LOCKS if name not in locked}
    return names + [
        name for name in {**locked, **now} if locked.get(name) != now.get(name) and name not in missing
    ]


def refuse_moved(
    lock: Mapping[str, Any], setting: Setting, model: Traits, probed: Probe | None, ledger: Ledger
) -> None:
    """Raise `LockError` that names each thing that moved."""
    if names := moved(lock, setting, model, probed, ledger):
        raise LockError(
            f"the lock of {setting.study.name} is broken: {', '.join(names)} moved since "
            f"{lock.get('locked_at', 'it was made')}; put it back, or lock anew and say so"
        )


def passes_digest(ledger: Ledger, side: Side) -> str:
    """A digest of what was recorded on a side, every field of it, whatever the order of recording."""
    return digest_of([_said(row) for row in _rows_of(ledger, side)])


def has_fit_passes(digests: Mapping[str, str], ledger: Ledger) -> bool:
    """Whether a ledger's fit side is that of the lock with these digests."""
    locked = digests.get("fit passes")
    if locked == passes_digest(ledger, "fit"):
        return True
    # the digest of locks made before every field was in it, as in the first published results
    rows = _rows_of(ledger, "fit")
    return locked == digest_of(
        [[*row.key, row.prompt, row.text, row.right, dict(row.signals)] for row in rows]
    )


def _rows_of(ledger: Ledger, side: Side) -> list[Pass]:
    return sorted((row for row in ledger.passes.values() if row.side == side), key=lambda row: row.key)


def _said(row: Pass) -> dict[str, Any]:
    """A row's fields but for those that are empty, so that a field added later leaves old digests alone."""
    return {name: value for name, value in msgspec.to_builtins(row).items() if value != _EMPTY[name]}


def code_digest() -> str:
    """The version of heedful with a digest of the code that decides."""
    root = Path(heedful.control.__file__).parent
    hasher = sha256(version("heedful").encode())
    for name in DECIDING_CODE:
        place = root / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            hasher.update(file.relative_to(root).as_posix().encode())
            hasher.update(file.read_bytes())
    return hasher.hexdigest()


def log_event(journal: Path, event: str, lock: str, at: str, **told: str) -> None:
    """Append to the study's journal; each line carries the digest of those before it."""
    said = journal.read_text(encoding="utf-8") if journal.exists() else ""
    before = sha256(said.encode()).hexdigest() if said else ""
    line = json.dumps({"at": at, "event": event, "lock": lock, **told, "before": before})
    write_text(journal, f"{said}{line}\n")


def harm_choices(journal: Path) -> list[str]:
    """What was chosen under a harm limit so far, by digest: each is another chance to be certified."""
    return [event["made_of"] for event in read_journal(journal) if event["event"] == CHOSE]


def journal_of(journal: Path, lock: str) -> list[dict[str, str]]:
    """The events of a lock; a journal that does not begin with its locking has lost something."""
    events = [event for event in read_journal(journal) if event["lock"] == lock]
    if not events or events[0]["event"] != LOCKED:
        raise LockError(f"the journal {journal} does not tell when this lock was made: put it back")
    return events


def read_journal(journal: Path) -> list[dict[str, str]]:
    """The events in a study's journal; a line that was changed or taken out breaks the chain."""
    events: list[dict[str, str]] = []
    so_far = b""
    for line in journal.read_bytes().splitlines(keepends=True) if journal.exists() else ():
        try:
            event = json.loads(line)
            whole = event["before"] == (sha256(so_far).hexdigest() if so_far else "")
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise LockError(f"the journal {journal} was changed after the fact")
        events.append(event)
        so_far += line
    return events
