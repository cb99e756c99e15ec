"""The lock of an agent study: everything that decides a test result, fixed before the test side is played."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from heedful.agents.agent_study import AgentSetup
from heedful.agents.agent_workspace import AgentFiles
from heedful.agents.play import Arm
from heedful.agents.step_task import INSTRUCTIONS, OWN_WORDS, QUESTION
from heedful.decisions import policy_fields, read_policy
from heedful.errors import LockError, UsageError
from heedful.protocol.deciding_code import DECIDING, PACKAGE, tree_digest
from heedful.protocol.workspace import read_json, write_json
from heedful.types import EpisodeSide, Traits, digest_of

AGENT_CODE = (
    *(f"agents/{name}.py" for name in ("actions", "agent_arms", "guards", "play", "step_task", "trail")),
    *("control.py", "episode.py", "environments/*.py", "environments/webshop/*.py"),
)
PLANNED = (
    "success, score and calls of every arm, with helps and hurts against no memory on the same episodes",
    "paired differences of the main arm to no memory with a 95% bootstrap interval over episodes",
    "HAR, LTR and TR of every arm; routed, accepted and invalid steps per episode",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLock:
    """What was fixed before the test side was played."""

    study: str
    environment: Mapping[str, Any]
    locked_at: str
    model: str
    main: str
    """The arm that the study is about."""
    arms: Mapping[str, Mapping[str, Any]]
    """Policies by arm, as JSON."""
    seeds: Mapping[EpisodeSide, tuple[int, ...]]
    statistics: tuple[str, ...]
    notes: str
    digests: Mapping[str, str]
    code: Mapping[str, str]
    fit: str = ""
    """Digest of fit.json; early locks have none."""
    played_before: int = 0
    """Plays of test episodes, one per episode and arm, that existed when the lock was made."""
    lock: str = ""
    """Digest of all fields above."""

    def test_arms(self) -> list[Arm]:
        return [Arm(name=name, policy=read_policy(fields)) for name, fields in self.arms.items()]


def make_agent_lock(
    setup: AgentSetup,
    model: Traits,
    files: AgentFiles,
    arms: Mapping[str, Any],
    fit_fields: Mapping[str, Any],
    at: str,
) -> AgentLock:
    """The lock of a fitted study with these arms; `fit_fields` is its fit as JSON."""
    lock = AgentLock(
        study=setup.study.name,
        environment=dict(setup.spec),
        locked_at=at,
        model=model.name,
        main=fit_fields["main"],
        arms={name: policy_fields(policy) for name, policy in arms.items()},
        seeds=dict(setup.seeds),
        statistics=PLANNED,
        notes=setup.study.notes,
        digests=agent_digests(setup, model),
        code=code_digests(setup.plugin),
        fit=digest_of(fit_fields),
        played_before=sum(row.side == "test" for row in files.episodes.rows),
    )
    return replace(lock, lock=_digest(msgspec.to_builtins(lock)))


def agent_digests(setup: AgentSetup, model: Traits) -> dict[str, str]:
    """A digest of everything that must not change, except the code."""
    return {
        "environment": digest_of(dict(setup.spec)),
        "bank": setup.bank.digest,
        "recall": digest_of(msgspec.to_builtins(setup.study.recall)),
        "acting": digest_of(msgspec.to_builtins(setup.study.act)),
        "prompts": digest_of([INSTRUCTIONS, OWN_WORDS, QUESTION]),
        "example": digest_of([message.content for message in setup.example]),
        "episodes": digest_of({side: list(seeds) for side, seeds in setup.seeds.items()}),
        "model": model.fingerprint,
    }


def code_digests(plugin: Path | None) -> dict[str, str]:
    """A digest of each module that decides; `plugin` is that of an environment of another package."""
    files = [file for name in (*DECIDING, *AGENT_CODE) for file in sorted(PACKAGE.glob(name))]
    own = {file.relative_to(PACKAGE).as_posix(): tree_digest(file) for file in files}
    return own if plugin is None else {**own, f"plug-in {plugin.name}": tree_digest(plugin)}


def moved_since(lock: AgentLock, setup: AgentSetup, model: Traits) -> list[str]:
    """Everything that changed since the lock, by name."""
    now = {**agent_digests(setup, model), **code_digests(setup.plugin)}
    locked = {**lock.digests, **lock.code}
    return [name for name in {**locked, **now} if locked.get(name) != now.get(name)]


def refuse_moved_agents(lock: AgentLock, setup: AgentSetup, model: Traits) -> None:
    """Raise a `LockError` that names everything that changed since the lock."""
    if changed := moved_since(lock, setup, model):
        raise LockError(
            f"the lock of {lock.study} is broken: {', '.join(changed)} changed since {lock.locked_at}; "
            "undo the change, or make a new lock and report that"
        )


def read_locked_fit(file: Path, lock: AgentLock) -> dict[str, Any]:
    """The fit of a locked study; an edited one does not match the lock."""
    fit = read_json(file, "restore it: a locked study does not choose its policies again")
    if lock.fit and digest_of(fit) != lock.fit:
        raise LockError(f"{file} was edited after the lock of {lock.study} was made; restore the file")
    return fit


def write_agent_lock(file: Path, lock: AgentLock) -> None:
    write_json(file, msgspec.to_builtins(lock))


def read_agent_lock(file: Path) -> AgentLock:
    """The lock of a study; an edited lock does not match its own digest."""
    raw = read_json(file, "run heedful agent study first")
    if _digest(raw) != raw.get("lock"):
        raise LockError(f"{file} was edited and does not match its digest; restore the file")
    try:
        return msgspec.convert(raw, AgentLock)
    except msgspec.ValidationError as error:
        raise UsageError(f"{file} was made by another version of heedful: {error}") from error


def _digest(fields: Mapping[str, Any]) -> str:
    return digest_of({name: value for name, value in fields.items() if name != "lock"})
