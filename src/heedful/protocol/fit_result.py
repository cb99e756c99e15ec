"""The result of choosing a policy, as a value and as stored in fit.json and lock.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from heedful.decisions import policy_fields, read_policy
from heedful.errors import UsageError
from heedful.mismatch import mismatch
from heedful.protocol.workspace import read_json
from heedful.types import Policy

SIMPLICITY = ("never", "always", "gate", "choose", "agree", "cascade", "dual", "prior", "value")
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
    """Without the trees of a value policy, which the fit result holds once."""
    objective: float
    """On the rows it was tuned on; of a prior, on the certifying rows."""
    hurts_chosen_on: int | None = None
    """Hurts on held-out folds of the choosing rows; None on a ladder, whose order is fixed beforehand."""
    hurts: int
    """Hurts on the certifying rows."""
    p_value: float
    certified: bool
    helps: int | None = None
    """Helps on the certifying rows; None in early locks, like the other fields below."""
    held_out: HeldOutScore | None = None
    """On certifying rows that no ladder was tuned on, the same for all ladders of a study."""
    margin: float | None = None
    """The margin of a value policy."""


Promise = Literal["harm", "no-loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmCertificate:
    """A promise, and the policies of one ladder tested for it in a fixed order."""

    limit: float | None
    """The harm limit; None if the promise is that accuracy does not fall."""
    confidence: float
    chosen_on: int
    tested_on: int
    path: tuple[HarmTest, ...]
    ladder: str = "thresholds"
    ladders: int = 1
    """How many ladders share the error."""
    policy: Policy | None = None
    """The value policy whose margins the path tests, with its trees."""

    def policy_at(self, place: int) -> Policy:
        """The policy that the test at a place is about, with its trees."""
        test, whole = self.path[place], self.policy
        if test.margin is None or whole is None or whole.value is None:
            return test.policy
        return replace(whole, value=replace(whole.value, margin=test.margin))

    @property
    def promise(self) -> Promise:
        return "no-loss" if self.limit is None else "harm"

    @property
    def chosen(self) -> int | None:
        """The place of the certified policy to use: the boldest, which `no-loss` tests first."""
        certified = [place for place, test in enumerate(self.path) if test.certified]
        if not certified:
            return None
        return certified[-1] if self.promise == "harm" else certified[0]


THRESHOLD, VALUE, PRIOR = "threshold", "value", "prior"
"""The ways to decide: the paper's thresholds and margins, or an estimate of the value by trees that were
fitted on the study's own rows or on other studies only."""


def family_name(kind: PolicyKind) -> str:
    return kind.family if kind.family in (VALUE, PRIOR) else THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyFit:
    """The best policy of a family, so that a lock holds one of each."""

    policy: Policy
    kind: PolicyKind
    held_out: HeldOutScore | None = None
    """On rows that it was not tuned on."""
    certified_limit: float | None = None
    """The share of answers that it was certified to hurt at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """The chosen policy, how it was chosen, and how optimistic its fit score is."""

    policy: Policy
    kind: PolicyKind
    objective: float
    """On the rows it was tuned on; if no row tuned it, the held-out objective, except in early locks."""
    held_out_objective: float
    optimism: float
    policies: int = 0
    """How many policies were scored on the fit side; 0 if an early lock did not count them."""
    rows: int = 0
    """Rows that the policies were tuned on."""
    leaders: tuple[HeldOutScore, ...] = ()
    """The best kinds by cross-validation, best first."""
    families: Mapping[str, FamilyFit] = field(default_factory=dict)
    """The best threshold policy and, if the study fits it, the value policy; empty in early locks."""
    matched: Mapping[str, FamilyFit] = field(default_factory=dict)
    """Value policies over memory-free samples, over banks and over both, at the same number of calls; empty
    if the study has no samples."""
    notes: tuple[str, ...] = ()
    certificate: HarmCertificate | None = None
    """Of the ladder that the policy is from; of the first ladder, if nothing was certified."""
    further_certificates: tuple[HarmCertificate, ...] = ()
    """Of the other ladders."""
    unlimited: "FitResult | None" = None
    """The result of the fit without the harm limit."""
    passes: str = ""
    """Digest of the passes it was chosen on."""
    made_of: str = ""
    """Digest of the result and of the settings it depends on."""

    @property
    def tuned(self) -> bool:
        """Whether rows of the study tuned the policy; a prior or agreement is certified as it was before."""
        return self.certificate is None or (self.kind != BASELINE and self.certificate.chosen_on > 0)

    @property
    def certificates(self) -> tuple[HarmCertificate, ...]:
        own = () if self.certificate is None else (self.certificate,)
        return (*own, *self.further_certificates)


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
