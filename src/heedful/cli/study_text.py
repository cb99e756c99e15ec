"""A study's fit and status as text."""

from heedful.decisions import policy_fields
from heedful.protocol.fit_result import FitResult, HarmCertificate
from heedful.protocol.grading_check import warning_lines
from heedful.protocol.status import StudyStatus


def fitted_lines(fitted: FitResult) -> list[str]:
    """The policy chosen on the fit side, and the optimism of its score."""
    policy = policy_fields(fitted.policy)
    lines = [
        f"chosen from {fitted.policies} policies on {fitted.rows} rows: {fitted.kind}",
        f"  threshold {policy['threshold']}, margins {policy['margins']}",
        f"  objective {fitted.objective:.4f} on the tuning rows, "
        f"{fitted.held_out_objective:.4f} on held-out folds (optimism {fitted.optimism:+.4f})",
    ]
    lines += [f"  {note}" for note in fitted.notes]
    if fitted.certificate is not None:
        lines += _certificate_lines(fitted.certificate)
    lines.append("best kinds by cross-validation (objective, accuracy, calls per task):")
    for held in fitted.leaders[:6]:
        lines.append(f"  {held.objective:.4f}  {held.accuracy:.4f}  {held.calls:.2f}  {held.kind}")
    return lines


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
    if status.seconds_left:
        lines.append(f"  about {status.seconds_left / 60:.0f} minutes of recording left")
    return lines


def damage_line(line: int, problem: str) -> str:
    return f"line {line} of the ledger is damaged ({problem}): its pass is recorded again if it is missing"


def _certificate_lines(certificate: HarmCertificate) -> list[str]:
    certified = sum(test.certified for test in certificate.path)
    return [
        f"  harm limit {certificate.limit:.1%} at {certificate.confidence:.0%} confidence: "
        f"{certified} of {len(certificate.path)} policies certified "
        f"(chosen on {certificate.chosen_on} rows, tested on {certificate.tested_on} other rows)"
    ]
