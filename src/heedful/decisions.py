"""Build decisions from outcomes, and convert them to and from JSON."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import msgspec

from heedful.errors import UsageError
from heedful.mismatch import mismatch
from heedful.passes import pass_record
from heedful.records import CandidateRecord, Decision, ModelRef, PassRecord
from heedful.types import Attempt, Outcome, Policy, digest_of

THRESHOLD_WORDS = {-inf: "never", inf: "always"}
"""JSON has no infinity, so the thresholds for no task and for every task are written as words."""
UNBOUNDED = {word: threshold for threshold, word in THRESHOLD_WORDS.items()}


def decision_of(outcome: Outcome, at: float) -> Decision:
    """The decision record of an outcome; `at` is the time of the answer."""
    model, specs = outcome.model, outcome.sources
    fingerprint = model.fingerprint

    def record_of(attempt: Attempt) -> PassRecord:
        return pass_record(attempt, specs.get(attempt.source, {}), fingerprint)

    return Decision(
        id=outcome.decision,
        at=at,
        task=outcome.task,
        model=ModelRef(
            name=model.name, endpoint=model.endpoint, fingerprint=fingerprint, sampling=model.sampling
        ),
        policy=without_trees(outcome.policy),
        policy_id=policy_id(outcome.policy),
        sources=specs,
        first=record_of(outcome.baseline),
        confidence=outcome.confidence,
        route=outcome.route,
        candidates=tuple(
            CandidateRecord(record=record_of(c.attempt), confidence=c.confidence, verdict=c.verdict)
            for c in outcome.candidates
        ),
        verdict=outcome.verdict,
        chosen=outcome.chosen,
        answer=outcome.answer,
        calls=outcome.calls,
        usage=outcome.usage,
        seconds=outcome.seconds,
        overhead_seconds=outcome.overhead_seconds,
        faults=outcome.faults,
        value=outcome.value,
        trial=outcome.trial,
        assignment=outcome.assignment,
    )


def without_trees(policy: Policy) -> Policy:
    """A policy as decisions hold it: the trees of a value rule are known by the policy's id."""
    return policy if policy.value is None else replace(policy, value=None)


def decision_fields(decision: Decision) -> dict[str, Any]:
    """A decision as JSON; `read_decision` is its inverse."""
    fields: dict[str, Any] = msgspec.to_builtins(replace(decision, policy=Policy()))
    return {**fields, "policy": policy_fields(decision.policy)}


def read_decision(fields: Mapping[str, Any]) -> Decision:
    """Read a decision from its JSON fields; the inverse of `decision_fields`."""
    try:
        return msgspec.convert({**fields, "policy": read_policy(fields["policy"])}, Decision)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        id = fields.get("id") or fields.get("decision")
        raise UsageError(
            f"decision {id} was recorded by another version of heedful and cannot be read: {mismatch(error)}"
        ) from error


def policy_id(policy: Policy) -> str:
    """The first 12 characters of the policy's digest."""
    global _newest_id
    if _newest_id[0] is not policy:
        _newest_id = policy, digest_of(policy_fields(policy))[:12]
    return _newest_id[1]


_newest_id: tuple[Policy | None, str] = (None, "")
"""The last policy and its id: a running controller asks for the same one with every decision."""


def policy_fields(policy: Policy) -> dict[str, Any]:
    """A policy as JSON; `read_policy` is its inverse."""
    threshold = THRESHOLD_WORDS.get(policy.threshold, policy.threshold)
    fields: dict[str, Any] = msgspec.to_builtins(policy)
    if policy.value is None:  # as in locks that were made before there were value policies
        del fields["value"]
    return {**fields, "threshold": threshold}


def read_policy(fields: Mapping[str, Any]) -> Policy:
    """Read a policy from its JSON fields.

    Early locks store the first pass's calibrator among those of the sources.
    """
    threshold, calibrators = fields["threshold"], fields.get("calibrators")
    if calibrators is not None and _is_flat(calibrators):
        sources = {name: calibrator for name, calibrator in calibrators.items() if name != "first"}
        calibrators = {"first": calibrators["first"], "sources": sources}
    known = {**fields, "threshold": UNBOUNDED.get(threshold, threshold), "calibrators": calibrators}
    return msgspec.convert(known, Policy)


def _is_flat(calibrators: Mapping[str, Any]) -> bool:
    sources = calibrators.get("sources")
    return sources is None or not isinstance(sources.get("bias", {}), Mapping)
