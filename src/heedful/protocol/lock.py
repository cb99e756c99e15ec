"""The lock: everything that decides a test result, fixed before the test side is opened."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.benchmarks.items import items_digest
from heedful.benchmarks.metrics import metric_source
from heedful.benchmarks.questions import OwnQuestions
from heedful.decisions import policy_fields
from heedful.errors import LockError
from heedful.protocol.clusters import Clusters
from heedful.protocol.deciding_code import CodeState, code_state, module_digests
from heedful.protocol.endpoint_probe import EndpointProbe
from heedful.protocol.fit_result import FitResult, from_fields, read_fit, to_fields
from heedful.protocol.ledger import Ledger
from heedful.protocol.line_file import has_lines
from heedful.protocol.passes_digest import has_fit_passes, passes_digest, side_rows
from heedful.protocol.setup import StudySetup
from heedful.protocol.study import settings_fields
from heedful.protocol.workspace import Workspace, read_json, write_json
from heedful.stages.compose import first_prompt
from heedful.types import Policy, Spec, Traits, digest_of

PLANNED = (
    "accuracy of every arm with a 95% Wilson interval",
    "paired difference to the no-memory baseline with a 95% bootstrap interval over clusters of questions",
    "exact two-sided McNemar test against the baseline",
    "helps, hurts, oracle, gap-close",
    "AUC of second-pass confidence for helps against hurts, per bank",
    "Platt scaling fitted on the fit side: ECE, Brier, NLL, raw and scaled",
)
PLANNED_BY_TASK = tuple(line.replace("clusters of questions", "tasks") for line in PLANNED)
"""Of locks without clusters, in which every task is a cluster of its own."""
NOT_IN_EARLY_LOCKS = ("grading", "fit settings", "statistics")
"""Digests that the locks of the first published results lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """Which model answers; the digest of its weights is among the digests."""

    name: str
    endpoint: str = ""
    probe: EndpointProbe | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Everything fixed before the test side was opened; defaults stand for fields that early locks lack."""

    study: str
    benchmark: str
    locked_at: str
    fit: FitResult
    model: ModelIdentity
    sources: Mapping[str, Spec]
    kinds: Mapping[str, str]
    splits: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...]
    choices: int = 0
    """How many policies had been chosen under a harm limit on these rows, including this one."""
    clusters: str = ""
    """Digest of the clusters of questions; empty if every task is a cluster of its own."""
    test_passes: int = 0
    """Passes of the test side in the ledger, or in the one it reuses, when the lock was made."""
    statistics: tuple[str, ...]
    notes: str
    digests: Mapping[str, str]
    code: CodeState | None = None
    """None for early locks, which hold one digest of all code and cannot be compared by module."""
    lock: str = ""
    """Digest of all fields above, as stored in the file."""

    @property
    def policy(self) -> Policy:
        return self.fit.policy

    @property
    def choosing_rows(self) -> int:
        """Fit rows on which the policy was chosen; with a harm limit, without those that certified it."""
        certificate = self.fit.certificate
        if certificate is None or self.clusters:  # earlier locks count all fit rows in `fit.rows`
            return self.fit.rows
        return certificate.chosen_on * len(self.seeds)


def make_lock(
    setup: StudySetup,
    model: Traits,
    probed: EndpointProbe | None,
    ledger: Ledger,
    fitted: FitResult,
    clusters: Clusters,
    choices: int,
    at: str,
    earlier: Ledger | None = None,
) -> Lock:
    """The lock of a fitted study; `choices` counts the choices made under a harm limit.

    `earlier` is the ledger that the study reuses.
    """
    study = setup.study
    code = code_state(setup.benchmark)
    lock = Lock(
        study=study.name,
        benchmark=setup.benchmark.name,
        locked_at=at,
        fit=fitted,
        model=ModelIdentity(name=model.name, endpoint=model.endpoint, probe=probed),
        sources={name: dict(source.spec) for name, source in setup.sources("test", 0).items()},
        kinds={name: settings.role for name, settings in study.sources.items()},
        splits={side: tuple(item.id for item in items) for side, items in setup.splits.parts.items()},
        dropped={name: tuple(ids) for name, ids in setup.dropped.items()},
        seeds=study.seeds,
        choices=choices,
        clusters=clusters.digest,
        test_passes=_known_test_passes(setup, ledger, earlier),
        statistics=PLANNED,
        notes=study.notes,
        digests={**digests(setup, model, ledger, fitted.policy), "code": digest_of(code.modules)},
        code=code,
    )
    return replace(lock, lock=_digest(lock_fields(lock)))


def _known_test_passes(setup: StudySetup, ledger: Ledger, earlier: Ledger | None) -> int:
    """Passes of the test rows that were decoded already, each counted once."""
    rows = {item.id for item in setup.splits.test}
    known = {row.key for row in side_rows(ledger, "test")}
    reused = () if earlier is None else side_rows(earlier, "test")
    return len(known | {row.key for row in reused if row.task in rows})


def lock_fields(lock: Lock) -> dict[str, object]:
    """A lock as JSON, with the policy at the top level, where `--policy` expects it."""
    fit = to_fields(lock.fit)
    return {"policy": fit.pop("policy"), **to_fields(lock), "fit": fit}


def write_lock(file: Path, lock: Lock) -> None:
    write_json(file, lock_fields(lock))


def read_lock(file: Path) -> Lock:
    """The lock of a study; an edited lock does not match its own digest."""
    raw = read_json(file, "run heedful study lock first")
    if _digest(raw) != raw.get("lock"):
        raise LockError(
            f"the lock itself changed: {file} was edited and does not match its digest; restore the file"
        )
    fit = raw.get("fit")
    whole = {**fit, "policy": raw.get("policy")} if isinstance(fit, dict) else fit
    return from_fields({**raw, "fit": whole}, Lock, file)


def study_fit(space: Workspace) -> FitResult:
    """The locked choice, or the one of the fit side if nothing is locked yet."""
    return read_lock(space.lock).fit if space.lock.exists() else read_fit(space.fit)


def study_policy(space: Workspace) -> Policy:
    """The locked policy, or the chosen one if nothing is locked yet."""
    return study_fit(space).policy


def drop_fit(space: Workspace) -> int:
    """Delete the fit of a locked study, which its lock holds too; the number of bytes that it had.

    The lock of an agent study, whose folder has no ledger, does not hold its fit.
    """
    if not (has_lines(space.ledger) and space.lock.exists() and space.fit.exists()):
        return 0
    if read_lock(space.lock).fit != read_fit(space.fit):
        return 0
    size = space.fit.stat().st_size
    space.fit.unlink()
    return size


def _digest(fields: Mapping[str, object]) -> str:
    return digest_of({name: value for name, value in fields.items() if name != "lock"})


def digests(setup: StudySetup, model: Traits, ledger: Ledger, policy: Policy) -> dict[str, str]:
    """A digest of everything that must not change, except the code."""
    tasks = setup.tasks()
    return {
        **{f"data:{side}": items_digest(items) for side, items in setup.splits.parts.items()},
        **serving_digests(setup),
        "grading": digest_of([_grading(setup), [task.answer_pattern for task in tasks]]),
        "policy": digest_of(policy_fields(policy)),
        "model": model.fingerprint,
        "seeds": digest_of(list(setup.study.seeds)),
        "fit settings": digest_of(settings_fields(setup.study.fit)),
        "statistics": digest_of(list(PLANNED)),
        "fit passes": passes_digest(ledger, "fit"),
    }


def serving_digests(setup: StudySetup) -> dict[str, str]:
    """Digests of everything besides policy and model that decides how a question is answered."""
    sources = setup.sources("test", 0)
    return {
        **{f"bank:{name}": bank.digest for name, bank in setup.banks.items()},
        **{f"source:{name}": digest_of(dict(source.spec)) for name, source in sources.items()},
        "prompts": digest_of([first_prompt(task).digest for task in setup.tasks()]),
    }


def _grading(setup: StudySetup) -> list[str]:
    """The metric of custom questions, with its code if that is custom too, and with its judge."""
    if setup.study.questions is None:
        return []
    metric = setup.study.questions.metric
    grader = setup.benchmark.grader if isinstance(setup.benchmark, OwnQuestions) else None
    return [metric, metric_source(metric, setup.folder), *([] if grader is None else grader.settings)]


def moved(
    lock: Lock, setup: StudySetup, model: Traits, probed: EndpointProbe | None, ledger: Ledger
) -> list[str]:
    """The names of everything that changed since the lock; code by module, if the lock holds modules."""
    before = lock.model.probe
    same = before is probed if before is None or probed is None else before.same(probed)
    locked = {name: digest for name, digest in lock.digests.items() if name != "code"}
    now = digests(setup, model, ledger, lock.policy)
    if not lock.clusters:
        now["statistics"] = digest_of(list(PLANNED_BY_TASK))
    if has_fit_passes(locked, ledger):
        now["fit passes"] = locked["fit passes"]
    missing = {name for name in NOT_IN_EARLY_LOCKS if name not in locked}
    changed = [] if lock.code is None else lock.code.changed(module_digests(setup.benchmark))
    return [
        *([] if same else ["the endpoint's replies"]),
        *(name for name in {**locked, **now} if locked.get(name) != now.get(name) and name not in missing),
        *(f"the code in {name}" for name in changed),
    ]


def refuse_moved(
    lock: Lock, setup: StudySetup, model: Traits, probed: EndpointProbe | None, ledger: Ledger
) -> None:
    """Raise a `LockError` that names everything that changed."""
    names = moved(lock, setup, model, probed, ledger)
    early = "its code cannot be compared by module, because an earlier version of heedful made the lock"
    if names:
        raise LockError(
            f"the lock of {lock.study} is broken: {', '.join(names)} changed since {lock.locked_at}; "
            f"undo the change, or make a new lock and report that{'' if lock.code else f'; {early}'}"
        )
    if lock.code is None:
        raise LockError(f"the lock of {lock.study} cannot be verified: {early}; nothing else changed")
