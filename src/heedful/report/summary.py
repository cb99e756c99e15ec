"""The report as JSON: fixed keys first, then everything behind the tables."""

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any

from heedful.decisions import policy_fields, without_trees
from heedful.evaluation.arm_results import Arm, PairedChange
from heedful.evaluation.evaluate import Evaluation
from heedful.evaluation.families import FamilyResult
from heedful.evaluation.limits import LimitResult
from heedful.evaluation.matched import Matched
from heedful.protocol.crossfit_file import crossfit_fields
from heedful.report.conclusion import conclude
from heedful.report.phrases import policy_brief, policy_words
from heedful.report.protocol_tables import model_name
from heedful.stats.intervals import Interval


def summarise(evaluation: Evaluation) -> dict[str, Any]:
    """The report as an object; programs may rely on the keys down to `families`."""
    mine = evaluation.heedful
    return {
        "arms": {arm.name: _arm(arm) for arm in evaluation.every_arm},
        "delta": _interval(mine.paired.delta),
        "mcnemar_p": mine.paired.p,
        "oracle": evaluation.oracle.routed.value,
        "gap_close": evaluation.oracle.gap_close,
        "model_calls": evaluation.cost.model_calls,
        "rerun_calls": evaluation.cost.rerun.calls,
        "test_openings": evaluation.openings,
        "crossfit": None if evaluation.crossfit is None else crossfit_fields(evaluation.crossfit),
        "harm_upper": evaluation.harm.heedful.shared.upper,
        "families": {family.name: _family(family) for family in evaluation.families},
        **_matched(evaluation.matched),
        **_frontier(evaluation),
        **_identity(evaluation),
        **_details(evaluation),
        **_words(evaluation),
    }


def _words(evaluation: Evaluation) -> dict[str, Any]:
    """What the report shows of the user's own texts; nothing for a report without texts."""
    words = evaluation.words
    if words is None:
        return {}
    return {
        "warnings": [asdict(warning) for warning in words.warnings],
        "changes": [asdict(row) for row in words.changes],
    }


def _identity(evaluation: Evaluation) -> dict[str, Any]:
    lock = evaluation.lock
    return {
        "study": lock.study,
        "benchmark": lock.benchmark,
        "model": model_name(evaluation),
        "lock": lock.lock,
        "locked_at": lock.locked_at,
        "notes": lock.notes,
        "finding": asdict(conclude(evaluation)),
        "policy": policy_fields(without_trees(lock.policy)),
        "policy_in_words": policy_words(lock.policy),
        "questions": evaluation.tasks,
        "clusters": _clusters(evaluation),
        "seeds": list(lock.seeds),
        "missing": list(evaluation.missing),
        "failed_passes": {side: dict(counts) for side, counts in evaluation.failed.items()},
        "damaged_rows": evaluation.damaged,
        "journal": [{"at": e.at, "event": e.event, "lock": e.lock} for e in evaluation.events],
    }


def _details(evaluation: Evaluation) -> dict[str, Any]:
    oracle, isolation, lock = evaluation.oracle, evaluation.isolation, evaluation.lock
    story = lock.fit
    return {
        "oracles": {"routed": _interval(oracle.routed), "all_banks": _interval(oracle.all_banks)},
        "gap_close_all": oracle.gap_close_all,
        "harm": {
            "independent_decode": evaluation.harm.reference,
            "arms": {
                one.arm: {
                    "shared": asdict(one.shared),
                    "independent": None if one.independent is None else asdict(one.independent),
                }
                for one in evaluation.harm.arms
            },
        },
        "limits": [_limit(one) for one in evaluation.limits],
        "alternatives": [
            {"arm": one.arm.name, "kind": one.kind, **_paired(one.paired)} for one in evaluation.alternatives
        ],
        "components": {
            "threshold": isolation.threshold,
            "policies": {
                one.arm.name: {"fit_accuracy": one.fit_accuracy, "policy": policy_fields(one.arm.policy)}
                for one in isolation.components
            },
            "stages": [
                {"stage": s.name, "arm": s.arm.name, "before": s.before, **_paired(s.paired)}
                for s in isolation.stages
            ],
        },
        "signals": {
            one.signal: {
                "bank": one.bank,
                "percentile": one.percentile,
                "fit_accuracy": one.fit_accuracy,
                **_arm(one.arm),
            }
            for one in evaluation.signals
        },
        "thresholds": _plain(None if evaluation.thresholds is None else asdict(evaluation.thresholds)),
        "calibration": [asdict(one) for one in evaluation.calibration],
        "reliability": [asdict(one) for one in evaluation.reliability],
        "separability": [asdict(one) for one in evaluation.separability],
        "bins": [asdict(one) for one in evaluation.bins],
        "coverage": [asdict(one) for one in evaluation.coverage],
        "entries": [asdict(one) for one in evaluation.entries],
        "cost": asdict(evaluation.cost),
        "fit": {
            "policies": story.policies,
            "rows": lock.choosing_rows,
            "certifying_rows": None if story.certificate is None else story.certificate.tested_on,
            "objective": story.objective if story.tuned else story.held_out_objective,
            "held_out_objective": story.held_out_objective,
            "optimism": story.optimism if story.tuned else 0.0,
            "notes": list(story.notes),
        },
    }


def _clusters(evaluation: Evaluation) -> dict[str, Any] | None:
    """The repeated questions of the study; None if its questions were never compared."""
    repeats = evaluation.repeats
    if not repeats.questions:
        return None
    return {
        "test": evaluation.clusters,
        "repeated": len(repeats.clusters),
        "straddling": len(repeats.straddling),
        "near": repeats.near,
    }


def _arm(arm: Arm) -> dict[str, Any]:
    return {
        "n": arm.n,
        "accuracy": arm.accuracy.value,
        "helps": arm.paired.helps,
        "hurts": arm.paired.hurts,
        "calls_per_task": arm.calls,
        "accuracy_low": arm.accuracy.low,
        "accuracy_high": arm.accuracy.high,
        "delta": _interval(arm.paired.delta),
        "mcnemar_p": arm.paired.p,
        "consulted": arm.consulted,
        "tokens_per_task": arm.tokens,
        "seconds_per_task": arm.seconds,
    }


def _family(family: FamilyResult) -> dict[str, Any]:
    arm = family.arm
    return {
        "accuracy": arm.accuracy.value,
        "helps": arm.paired.helps,
        "hurts": arm.paired.hurts,
        "calls": arm.calls,
        "certified_limit": family.certified_limit,
        "certified": family.certified,
        "harm_upper": family.harm.upper,
        "delta": _interval(arm.paired.delta),
        "mcnemar_p": arm.paired.p,
        "held_out_accuracy": family.held_out,
        "kind": family.kind,
        "policy_in_words": policy_words(arm.policy),
        "locked": family.locked,
    }


def _matched(matched: Matched | None) -> dict[str, Any]:
    """Memory against compute; nothing for a study without samples."""
    if matched is None:
        return {}
    differences = {f"{one.first}-{one.second}": _paired(one.paired) for one in matched.differences}
    return {"matched": {"arms": {arm.name: _arm(arm) for arm in matched.arms}, "differences": differences}}


def _frontier(evaluation: Evaluation) -> dict[str, Any]:
    """Value policies at other prices; nothing for a study without them."""
    if not evaluation.frontier:
        return {}
    return {
        "frontier": [
            {"family": point.family, "cost": point.price, **_arm(point.arm)} for point in evaluation.frontier
        ]
    }


def _limit(result: LimitResult) -> dict[str, Any]:
    preview = result.preview
    return {
        "limit": preview.limit,
        "own": preview.own,
        "policy": None if preview.policy is None else policy_brief(preview.policy),
        "certifying_rows": preview.tested_on,
        "hurts": None if preview.test is None else preview.test.hurts,
        "gain": preview.gain,
        "test": None if result.arm is None else _arm(result.arm),
    }


def _paired(paired: PairedChange) -> dict[str, Any]:
    return {
        "delta": _interval(paired.delta),
        "mcnemar_p": paired.p,
        "helps": paired.helps,
        "hurts": paired.hurts,
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high, "n": interval.n}


def _plain(value: Any) -> Any:
    """The value with null for infinite numbers, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
