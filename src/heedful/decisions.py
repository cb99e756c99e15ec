"""Decision records: what was decided for an answer, and why, as JSON that outlives the process."""

from dataclasses import asdict
from typing import Any

import msgspec

from heedful.types import Attempt, Candidate, Outcome, Policy, Task


def to_record(outcome: Outcome, at: float) -> dict[str, Any]:
    """Everything that led to an answer; texts of entries are found again by id and version."""
    return {
        "decision": outcome.decision,
        "at": at,
        "task": task_fields(outcome.task),
        "model": {
            "name": outcome.model.name,
            "endpoint": outcome.model.endpoint,
            "fingerprint": outcome.model.fingerprint,
        },
        "policy": policy_fields(outcome.policy),
        "sources": {name: dict(spec) for name, spec in outcome.sources.items()},
        "baseline": _attempt(outcome.baseline),
        "confidence": outcome.confidence,
        "route": {"choice": outcome.route.choice, "reason": outcome.route.reason},
        "candidates": [_candidate(candidate) for candidate in outcome.candidates],
        "verdict": None
        if outcome.verdict is None
        else {"choice": outcome.verdict.choice, "reason": outcome.verdict.reason},
        "chosen": outcome.chosen,
        "answer": outcome.answer,
        "calls": outcome.calls,
        "seconds": outcome.seconds,
        "overhead_seconds": outcome.overhead_seconds,
        "faults": [{"stage": fault.stage, "error": fault.error} for fault in outcome.faults],
    }


def task_fields(task: Task) -> dict[str, Any]:
    """A task as JSON; `read_task` is its inverse."""
    return {
        "id": task.id,
        "question": task.question,
        "instructions": task.instructions,
        "answer_pattern": task.answer_pattern,
        "choices": list(task.choices),
        "schema": None if task.schema is None else dict(task.schema),
        "max_tokens": task.max_tokens,
    }


def read_task(fields: dict[str, Any]) -> Task:
    return Task(**{**fields, "choices": tuple(fields["choices"])})


def policy_fields(policy: Policy) -> dict[str, Any]:
    """A policy as JSON, with `never` and `always` for the infinite thresholds."""
    unbounded = {float("-inf"): "never", float("inf"): "always"}
    return {
        "first": policy.first,
        "signal": policy.signal,
        "threshold": unbounded.get(policy.threshold, policy.threshold),
        "sources": list(policy.sources),
        "combine": policy.combine,
        "margins": None if policy.margins is None else dict(policy.margins),
        "guards": list(policy.guards),
        "budget": {"passes": policy.budget.passes, "cooldown": policy.budget.cooldown},
        "calibrators": None
        if policy.calibrators is None
        else {role: asdict(calibrator) for role, calibrator in policy.calibrators.items()},
    }


def read_policy(fields: dict[str, Any]) -> Policy:
    """The policy of `policy_fields`."""
    bounds = {"never": float("-inf"), "always": float("inf")}
    threshold = fields["threshold"]
    return msgspec.convert({**fields, "threshold": bounds.get(threshold, threshold)}, Policy)


def _attempt(attempt: Attempt) -> dict[str, Any]:
    decode, usage = attempt.decode, attempt.usage
    return {
        "source": attempt.source,
        "prompt_digest": attempt.prompt.digest,
        "text": decode.text,
        "answer": decode.answer,
        "finish": decode.finish,
        "tokens": {
            "prompt": usage.prompt_tokens,
            "completion": usage.completion_tokens,
            "cached": usage.cached_tokens,
        },
        "seconds": attempt.seconds,
        "recalls": [
            {"entry": recall.entry.id, "version": recall.entry.digest, "score": recall.score}
            for recall in attempt.recalls
        ],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        **_attempt(candidate.attempt),
        "confidence": candidate.confidence,
        "checks": [{"guard": check.guard, "reason": check.reason} for check in candidate.checks],
        "verdict": {"choice": candidate.verdict.choice, "reason": candidate.verdict.reason},
    }
