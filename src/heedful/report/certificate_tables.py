"""The tables about certificates: the tests of each ladder, and what other limits would certify."""

from heedful.evaluation.evaluate import Evaluation
from heedful.evaluation.limits import LimitResult
from heedful.protocol.fit_result import HarmCertificate, HarmTest
from heedful.report.phrases import change, p_value, percent, plain, points, policy_brief, promise_name
from heedful.report.report_table import ReportTable

LADDERS = {
    "thresholds": "threshold policies, tuned and ordered, safest first,",
    "agreement": "agreement of all banks at rising thresholds, fixed",
    "value": "margins of a value policy that was fitted",
    "prior": "margins of a prior that was fitted",
}


def certificate_tables(evaluation: Evaluation) -> tuple[ReportTable, ...]:
    """The promise and the tests of each ladder; empty for a study without one."""
    return tuple(_table(one, evaluation.lock.choices) for one in evaluation.lock.fit.certificates)


def _table(certificate: HarmCertificate, choices: int) -> ReportTable:
    several = certificate.ladders > 1
    title = "No-loss certificate" if certificate.promise == "no-loss" else "Harm certificate"
    return ReportTable(
        name=f"certificate-{certificate.ladder}" if several else "certificate",
        title=f"{title}: {certificate.ladder}" if several else title,
        note=certificate_words(certificate) + _chosen_again(certificate, choices),
        head=(
            "Policy, in the order of testing",
            "Objective",
            "Hurts, choosing rows",
            "Helps, certifying rows",
            "Hurts, certifying rows",
            "p",
            "Certified",
        ),
        rows=tuple(_row(certificate, test) for test in certificate.path),
        marked=frozenset(at for at, test in enumerate(certificate.path) if test.certified),
        empty="no policy was tested",
    )


def _row(certificate: HarmCertificate, test: HarmTest) -> tuple[str, ...]:
    return (
        tested_policy(test),
        plain(test.objective, 4),
        "" if test.hurts_chosen_on is None else f"{test.hurts_chosen_on} of {certificate.chosen_on}",
        "" if test.helps is None else str(test.helps),
        f"{test.hurts} of {certificate.tested_on}",
        p_value(test.p_value),
        "yes" if test.certified else "no",
    )


def tested_policy(test: HarmTest) -> str:
    """A tested policy in one line; of a value policy, the margin tells it apart."""
    if test.margin is None:
        return policy_brief(test.policy)
    return f"{test.policy.first} → value of {', '.join(test.policy.sources)}, margin {percent(test.margin)}"


def certificate_words(certificate: HarmCertificate) -> str:
    """What certified means, and how many policies were certified."""
    passed = sum(test.certified for test in certificate.path)
    fixed = (
        f"on {certificate.chosen_on} fit questions and tested on {certificate.tested_on} others"
        if certificate.chosen_on
        else f"before this study and tested on {certificate.tested_on} fit questions"
    )
    error = (1 - certificate.confidence) / certificate.ladders
    shared = f" {certificate.ladders} ladders share the error." if certificate.ladders > 1 else ""
    return (
        f"{_promise(certificate)} at {certificate.confidence:.0%} confidence. Ladder: "
        f"{LADDERS[certificate.ladder]} {fixed}; {passed} of {len(certificate.path)} were certified. "
        f"{_meaning(certificate)} would be at most {100 * error:.2g}%. Testing stops at the first failure, "
        f"so this holds for all certified policies together.{shared}"
    )


def _promise(certificate: HarmCertificate) -> str:
    if certificate.limit is None:
        return "Accuracy does not fall (helps at least as likely as hurts)"
    return f"Harm limit {percent(certificate.limit)} of answers"


def _meaning(certificate: HarmCertificate) -> str:
    if certificate.limit is None:
        return (
            "Certified means: if the policy hurt at least as often as it helps, the probability of so few "
            "hurts among its changes"
        )
    return (
        "Certified means: if the policy hurt more answers than the limit allows, the probability of seeing "
        "so few hurts"
    )


def _chosen_again(certificate: HarmCertificate, choices: int) -> str:
    """A sentence about repeated choices: each is another chance to be certified by luck."""
    if choices < 2:
        return ""
    return (
        f" {choices} policies were chosen under a {promise_name(certificate)} on these fit rows before one "
        "was locked; each was another chance to be certified, so the confidence is lower than stated."
    )


def limits_table(evaluation: Evaluation) -> ReportTable | None:
    """What limits of 1, 2, 3 and 5% would certify and gain; None for a study without a limit."""
    if not evaluation.limits:
        return None
    return ReportTable(
        name="limits",
        title="What other limits would certify",
        note=(
            "From the same tests of the same policies, on the same certifying rows. Each limit is another "
            "look at these rows, so only the limit of the study (highlighted) is certified; the others show "
            "what a study that had asked for them would have got. Gain: helps minus hurts on the certifying "
            "rows, on which no policy was tuned."
        ),
        head=(
            "Limit",
            "Boldest certified policy",
            "Hurts, certifying rows",
            "Gain there, points",
            "Test side, points [95%]",
            "Helps",
            "Hurts",
            "Calls",
        ),
        rows=tuple(map(_limit_row, evaluation.limits)),
        marked=frozenset(at for at, one in enumerate(evaluation.limits) if one.preview.own),
        words=frozenset({1}),
    )


def _limit_row(result: LimitResult) -> tuple[str, ...]:
    preview, arm = result.preview, result.arm
    if preview.test is None:
        return (percent(preview.limit), "none: no memory", "", "", "", "", "", "")
    on_test = (
        ("", "", "", "")
        if arm is None
        else (change(arm.paired.delta), str(arm.paired.helps), str(arm.paired.hurts), plain(arm.calls))
    )
    return (
        percent(preview.limit),
        tested_policy(preview.test),
        f"{preview.test.hurts} of {preview.tested_on}",
        "" if preview.gain is None else points(preview.gain),
        *on_test,
    )
