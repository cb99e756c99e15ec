"""The lock and its journal as values: the edge where the report reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from heedful.decisions import read_policy
from heedful.errors import LockError, UsageError
from heedful.types import Policy, digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KindOf:
    """A policy but for its numbers."""

    first: str
    family: str
    signal: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A kind of policy with its cross-validated score."""

    kind: KindOf
    objective: float
    accuracy: float
    calls: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One policy that was tested for harm."""

    policy: Policy
    objective: float
    hurts_chosen_on: int
    hurts: int
    p_value: float
    certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmCertificate:
    limit: float
    confidence: float
    chosen_on: int
    tested_on: int
    path: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlimited:
    """What the fit side chooses without the harm limit."""

    policy: Policy
    kind: KindOf
    objective: float
    held_out_objective: float
    optimism: float
    policies: int = 0
    """How many were scored; 0 in early locks, which did not count them."""
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FitStory:
    """How the policy was chosen."""

    kind: KindOf
    objective: float
    held_out_objective: float
    optimism: float
    policies: int
    rows: int
    leaders: tuple[Leader, ...]
    notes: tuple[str, ...]
    certificate: HarmCertificate | None = None
    unlimited: Unlimited | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelName:
    name: str
    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What was fixed before the test side was opened."""

    study: str
    benchmark: str
    locked_at: str
    policy: Policy
    fit: FitStory
    model: ModelName
    kinds: Mapping[str, str]
    splits: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...]
    choices: int = 0
    """How many policies had been chosen under a harm limit on these rows, this one included; early locks
    did not count."""
    test_passes: int = 0
    """Passes of the test side that the ledger held when the lock was made; early locks did not count."""
    statistics: tuple[str, ...]
    notes: str
    digests: Mapping[str, str]
    lock: str

    @property
    def choosing_rows(self) -> int:
        """Fit rows on which the policy was chosen: with a harm limit not those that certified it."""
        certificate = self.fit.certificate
        return self.fit.rows if certificate is None else certificate.chosen_on * len(self.seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A line of the journal."""

    at: str
    event: str
    lock: str


def read_lock(raw: Mapping[str, Any]) -> Locked:
    """The lock of `lock.json`; one that was edited since does not match its own digest."""
    content = {key: value for key, value in raw.items() if key != "lock"}
    if digest_of(content) != raw.get("lock"):
        raise LockError("lock.json was edited after it was made: its digest does not match; put it back")
    try:
        fit = {
            **raw["fit"],
            "certificate": _with_policies(raw["fit"]["certificate"]),
            "unlimited": _with_policy(raw["fit"].get("unlimited")),
        }
        return msgspec.convert({**raw, "policy": read_policy(raw["policy"]), "fit": fit}, Locked)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise UsageError(f"lock.json is not a lock that this version can read: {error}") from error


def _with_policies(certificate: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A certificate whose policies are read, their infinite thresholds included."""
    if certificate is None:
        return None
    return {**certificate, "path": [_with_policy(step) for step in certificate["path"]]}


def _with_policy(choice: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if choice is None else {**choice, "policy": read_policy(choice["policy"])}
