"""A study's fit and status as text."""

from heedful.cli.output import counted
from heedful.decisions import policy_fields
from heedful.protocol.fit_result import FitResult, HarmCertificate
from heedful.protocol.grading_check import warning_lines
from heedful.protocol.limits import preview_limits
from heedful.protocol.status import StudyStatus


def fitted_lines(fitted: FitResult) -> list[str]:
    """The policy chosen on the fit side, and the optimism of its score."""
    policy = policy_fields(fitted.policy)
    lines = [
        _chosen_line(fitted),
        f"  threshold {policy['threshold']}, margins {policy['margins']}",
        _objective_line(fitted),
    ]
    lines += [f"  {note}" for note in fitted.notes]
    for certificate in fitted.certificates:
        lines.append(_certificate_line(certificate))
    lines += _family_lines(fitted) + _limit_lines(fitted)
    lines.append("best kinds by cross-validation (objective, accuracy, calls per task):")
    for held in fitted.leaders[:6]:
        lines.append(f"  {held.objective:.4f}  {held.accuracy:.4f}  {held.calls:.2f}  {held.kind}")
    return lines


def _chosen_line(fitted: FitResult) -> str:
    if fitted.tuned:
        return f"chosen from {fitted.policies} policies on {fitted.rows} rows: {fitted.kind}"
    return f"chosen, and not tuned on any row of the study: {fitted.kind}"


def _objective_line(fitted: FitResult) -> str:
    if not fitted.tuned:
        return f"  objective {fitted.held_out_objective:.4f} on the rows that compare certified policies"
    return (
        f"  objective {fitted.objective:.4f} on the tuning rows, {fitted.held_out_objective:.4f} on rows it "
        f"was not tuned on (optimism {fitted.optimism:+.4f})"
    )


def status_lines(status: StudyStatus) -> list[str]:
    lines = [line for warning in status.warnings for line in warning_lines(warning)]
    lines.append(f"{status.study} in {status.folder}")
    for side, progress in status.sides.items():
        for source, count in progress.sources.items():
            lines.append(f"  {side:<5} {source:<12} {count.recorded:>5} of {count.wanted}")
            if count.failed:
                again = "" if side == "fit" and status.locked else "; --retry-failed decodes them again"
                lines.append(f"        {count.failed} failed, for example {count.error}{again}")
    lines += [f"  {damage_line(damage.line, damage.problem)}" for damage in status.damaged_rows]
    steps = [step for step, done in (("fitted", status.fitted), ("locked", status.locked)) if done]
    lines.append(f"  {', '.join(steps) or 'not fitted yet'}; test side openings: {status.test_openings}")
    if status.workers is not None:
        speed = (
            "" if status.passes_per_minute is None else f", {status.passes_per_minute:g} passes per minute"
        )
        lines.append(f"  recording with {counted(status.workers, 'worker')}{speed}")
    if status.seconds_left:
        lines.append(f"  about {counted(round(status.seconds_left / 60), 'minute')} of recording left")
    return lines


def damage_line(line: int, problem: str) -> str:
    return f"line {line} of the ledger is damaged ({problem}): its pass is recorded again if it is missing"


def _certificate_line(certificate: HarmCertificate) -> str:
    certified = sum(test.certified for test in certificate.path)
    promise = "accuracy does not fall" if certificate.limit is None else f"harm limit {certificate.limit:.1%}"
    return (
        f"  {promise} at {certificate.confidence:.0%} confidence, ladder {certificate.ladder}: "
        f"{certified} of {len(certificate.path)} policies certified "
        f"(chosen on {certificate.chosen_on} questions, tested on {certificate.tested_on} others)"
    )


def _family_lines(fitted: FitResult) -> list[str]:
    """The best threshold policy and the value policy, if both were fitted."""
    if len(fitted.families) < 2:
        return []
    lines = ["by family, on fit rows that a policy was not tuned on (accuracy, calls per task):"]
    for name, family in fitted.families.items():
        score = family.held_out
        held = "" if score is None else f"{score.accuracy:.4f}  {score.calls:.2f}  "
        lines.append(f"  {name:<9}  {held}{family.kind}")
    return lines


def _limit_lines(fitted: FitResult) -> list[str]:
    """What other harm limits would certify."""
    previews = preview_limits(fitted.certificates)
    if not previews:
        return []
    lines = ["what a limit would certify on these rows; each is another look, only the study's own counts:"]
    for preview in previews:
        own = "  (this study)" if preview.own else ""
        if preview.test is None or preview.gain is None or preview.test.held_out is None:
            lines.append(f"  {preview.limit:.0%}  no policy{own}")
            continue
        lines.append(
            f"  {preview.limit:.0%}  {100 * preview.gain:+.1f} points, {preview.test.hurts} hurts of "
            f"{preview.tested_on}: {preview.test.held_out.kind}{own}"
        )
    return lines
