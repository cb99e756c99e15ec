"""What other harm limits would certify, from the tests that a certificate holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.protocol.fit_result import HarmCertificate, HarmTest
from heedful.stats.risk import binomial_p_value, certify_in_order
from heedful.types import Policy

LIMITS = (0.01, 0.02, 0.03, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPreview:
    """The policy that a harm limit would certify; None: no policy."""

    limit: float
    own: bool
    """Whether it is the limit of the study, the only one that is certified."""
    policy: Policy | None = None
    test: HarmTest | None = None
    tested_on: int = 0

    @property
    def gain(self) -> float | None:
        """The change in accuracy on the certifying rows; None if unknown."""
        if self.test is None or self.test.helps is None:
            return None
        return (self.test.helps - self.test.hurts) / self.tested_on


def preview_limits(certificates: Sequence[HarmCertificate]) -> tuple[LimitPreview, ...]:
    """The best policy under each limit; empty for another promise, whose order of tests differs."""
    own = [one.limit for one in certificates if one.limit is not None]
    return tuple(_preview(certificates, limit, own[0]) for limit in sorted({*LIMITS, *own}) if own)


def _preview(certificates: Sequence[HarmCertificate], limit: float, own: float) -> LimitPreview:
    none = LimitPreview(limit=limit, own=limit == own)
    certified = [
        LimitPreview(
            limit=limit,
            own=limit == own,
            policy=certificate.policy_at(passed - 1),
            test=certificate.path[passed - 1],
            tested_on=certificate.tested_on,
        )
        for certificate in certificates
        if (passed := _passed(certificate, limit))
    ]
    return max(certified, key=_objective, default=none)


def _passed(certificate: HarmCertificate, limit: float) -> int:
    p_values = [binomial_p_value(test.hurts, certificate.tested_on, limit) for test in certificate.path]
    return certify_in_order(p_values, (1 - certificate.confidence) / certificate.ladders) if p_values else 0


def _objective(preview: LimitPreview) -> float:
    held_out = None if preview.test is None else preview.test.held_out
    return 0.0 if held_out is None else held_out.objective
