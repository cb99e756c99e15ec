"""What other limits would certify."""

import pytest

from heedful import Policy
from heedful.protocol.fit_result import HarmCertificate, HarmTest, HeldOutScore, PolicyKind
from heedful.protocol.limits import preview_limits


def harm_test(hurts: int, helps: int | None = None, objective: float | None = None) -> HarmTest:
    kind = PolicyKind("none", "gate", "mean", ("bank",))
    return HarmTest(
        policy=Policy(sources=("bank",), threshold=float(hurts)),
        objective=0.6,
        hurts_chosen_on=0,
        hurts=hurts,
        p_value=0.5,
        certified=False,
        helps=helps,
        held_out=None
        if objective is None
        else HeldOutScore(kind=kind, objective=objective, accuracy=objective, calls=1.0),
    )


def certificate(*path: HarmTest, limit: float | None = 0.02, ladders: int = 1) -> HarmCertificate:
    return HarmCertificate(
        limit=limit, confidence=0.95, chosen_on=176, tested_on=264, path=path, ladders=ladders
    )


def test_the_path_of_an_early_lock_shows_what_other_limits_certify() -> None:
    """Hurts of 264 as in the published SVAMP lock: 2% certifies two policies, 3% four, 5% six."""
    path = [harm_test(hurts) for hurts in (1, 0, 3, 0, 4, 5, 8, 9)]
    previews = preview_limits([certificate(*path)])
    assert [(one.limit, one.test and one.test.hurts) for one in previews] == [
        (0.01, None),
        (0.02, 0),
        (0.03, 0),
        (0.05, 5),
    ]
    assert [one.policy is path[at].policy for one, at in zip(previews[1:], (1, 3, 5), strict=True)] == [
        True
    ] * 3
    assert [one.own for one in previews] == [False, True, False, False]
    assert previews[3].gain is None, "an early lock does not count helps"


def test_two_ladders_share_the_error_and_the_better_policy_is_shown() -> None:
    timid, bold = certificate(harm_test(0, 3, 0.61), ladders=2), certificate(harm_test(1, 9, 0.63), ladders=2)
    two, three = preview_limits([timid, bold])[1:3]
    assert two.gain == pytest.approx(3 / 264), "1 hurt of 264 is certified at 5%, but not at 2.5%"
    assert three.gain == pytest.approx(8 / 264)


def test_another_promise_has_no_limits_to_show() -> None:
    assert preview_limits([certificate(harm_test(0), limit=None)]) == ()
    assert preview_limits([]) == ()
