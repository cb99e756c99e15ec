"""The result of choosing a policy, as a value and as stored in fit.json and lock.json."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from heedful.decisions import policy_fields, read_policy
from heedful.errors import UsageError
from heedful.mismatch import mismatch
from heedful.protocol.workspace import read_json
from heedful.types import Policy

SIMPLICITY = ("never", "always", "gate", "choose", "agree", "cascade", "dual", "value")
"""Families, simplest first: ties go to the simpler one."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class PolicyKind:
    """What cross-validation chooses between: a policy without its numbers."""

    first: str
    family: str
    signal: str = ""
    sources: tuple[str, ...] = ()

    @property
    def simplicity(self) -> tuple[int, int]:
        """Smaller is simpler."""
        return SIMPLICITY.index(self.family), len(self.sources)

    def __str__(self) -> str:
        chain = " → ".join((self.first, *self.sources))
        return f"{self.family} {chain}" + (f" by {self.signal}" if self.signal else "")


BASELINE = PolicyKind("none", "never")
Rank = tuple[float, float, tuple[int, int], PolicyKind]


def rank_of(objective: float, calls: float, kind: PolicyKind) -> Rank:
    """A sort key: better objective, then fewer calls, then the simpler kind."""
    return (-round(objective, 9), round(calls, 9), kind.simplicity, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutScore:
    """The score of a kind of policy in cross-validation, on rows its policies were not tuned on."""

    kind: PolicyKind
    objective: float
    accuracy: float
    calls: float

    @property
    def rank(self) -> Rank:
        return rank_of(self.objective, self.calls, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmTest:
    """One policy in the sequence of harm tests."""

    policy: Policy
    objective: float
    """On the rows it was tuned on."""
    hurts_chosen_on: int
    """Hurts on held-out folds of the choosing rows."""
    hurts: int
    """Hurts on the certifying rows."""
    p_value: float
    certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmCertificate:
    """The harm limit, and the policies tested against it, safest first."""

    limit: float
    confidence: float
    chosen_on: int
    tested_on: int
    path: tuple[HarmTest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """The chosen policy, how it was chosen, and how optimistic its fit score is."""

    policy: Policy
    kind: PolicyKind
    objective: float
    held_out_objective: float
    optimism: float
    policies: int = 0
    """How many policies were scored on the fit side; 0 if an early lock did not count them."""
    rows: int = 0
    """Rows that the policies were scored on."""
    leaders: tuple[HeldOutScore, ...] = ()
    """The best kinds by cross-validation, best first."""
    notes: tuple[str, ...] = ()
    certificate: HarmCertificate | None = None
    unlimited: "FitResult | None" = None
    """The result of the fit without the harm limit."""
    passes: str = ""
    """Digest of the passes it was chosen on."""
    made_of: str = ""
    """Digest of the result and of the settings it depends on."""


def read_fit(file: Path) -> FitResult:
    """The result that `heedful study fit` wrote."""
    return from_fields(read_json(file, "run heedful study fit first"), FitResult, file)


def to_fields(value: object) -> dict[str, object]:
    """A value as a JSON object, its policies as `policy_fields` writes them."""
    plain = _plain(value)
    assert isinstance(plain, dict), "a dataclass becomes an object"
    return plain


def from_fields(raw: Mapping[str, object], kind: type[T], file: Path) -> T:
    """The inverse of `to_fields`; `file` is named in errors."""
    try:
        return msgspec.convert(_with_policies(raw), kind)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise UsageError(f"{file} cannot be read by this version of heedful: {mismatch(error)}") from error


def _plain(value: object) -> object:
    if isinstance(value, Policy):
        return policy_fields(value)
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _with_policies(raw: object) -> object:
    """The JSON value with its policies parsed, including infinite thresholds."""
    if isinstance(raw, dict):
        return {
            name: read_policy(part) if name == "policy" and isinstance(part, dict) else _with_policies(part)
            for name, part in raw.items()
        }
    return [_with_policies(part) for part in raw] if isinstance(raw, list) else raw
