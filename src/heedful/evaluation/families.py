"""The best threshold policy, the value policy and the prior side by side, as the lock holds them."""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.evaluation.arm_results import Arm, measure
from heedful.evaluation.harm import HarmBound, harm_bound
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit_result import BASELINE, FamilyFit, FitResult, HarmCertificate, Promise, family_name
from heedful.types import Policy

CERTIFIED = "-certified"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyResult:
    """The locked policy of one family on the test side."""

    name: str
    """`threshold`, `value` or `prior`; with `-certified` if it was chosen under the study's promise."""
    kind: str
    arm: Arm
    harm: HarmBound
    certified_limit: float | None
    """The share of answers that it was certified to hurt at most; None: no such limit was certified."""
    certified: Promise | None
    """The promise that it was certified to keep."""
    held_out: float | None
    """Accuracy on fit rows that it was not tuned on; None if the lock does not hold it."""
    locked: bool
    """Whether it is the study's policy."""


def compare_families(data: StudyData) -> tuple[FamilyResult, ...]:
    """Every family that the lock holds, first without the promise, then with it."""
    return tuple(
        _result(data, name, family)
        for name, family in _named(data.lock.fit)
        if all(map(data.tested, _sources(family.policy)))
    )


def _named(fitted: FitResult) -> Iterator[tuple[str, FamilyFit]]:
    if fitted.unlimited is not None:
        yield from families_of(fitted.unlimited).items()
    suffix = "" if fitted.certificate is None else CERTIFIED
    for name, family in families_of(fitted).items():
        yield name + suffix, family


def families_of(fitted: FitResult) -> dict[str, FamilyFit]:
    """The families of a fit result; an early one holds its chosen policy only."""
    if fitted.families:
        return dict(fitted.families)
    certificate = fitted.certificate
    passed = certificate is not None and any(
        test.certified and test.policy == fitted.policy for test in certificate.path
    )
    chosen = FamilyFit(
        policy=fitted.policy,
        kind=fitted.kind,
        held_out=next((one for one in fitted.leaders if one.kind == fitted.kind), None),
        certified_limit=certificate.limit if certificate is not None and passed else None,
    )
    return {family_name(fitted.kind): chosen}


def _sources(policy: Policy) -> tuple[str, ...]:
    return (policy.first, *policy.sources)


def _result(data: StudyData, name: str, family: FamilyFit) -> FamilyResult:
    arm = measure(data, name, family.policy)
    return FamilyResult(
        name=name,
        kind=str(family.kind),
        arm=arm,
        harm=harm_bound(data, data.test.base_right, arm.right),
        certified_limit=family.certified_limit,
        certified=_certified(data.lock.fit.certificate, name, family),
        held_out=None if family.held_out is None else family.held_out.accuracy,
        locked=family.policy == data.lock.policy,
    )


def _certified(certificate: HarmCertificate | None, name: str, family: FamilyFit) -> Promise | None:
    """The promise of a policy chosen under one; the baseline needs no certificate."""
    if certificate is None or not name.endswith(CERTIFIED) or family.kind == BASELINE:
        return None
    return None if certificate.limit is not None and family.certified_limit is None else certificate.promise
