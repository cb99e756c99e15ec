"""The tables about how the study was run: cost, lock, event log and fit."""

from heedful.evaluation.cost import Spend
from heedful.evaluation.evaluate import Evaluation
from heedful.protocol.clusters import Clusters
from heedful.protocol.events import OPENED
from heedful.protocol.grading_check import warning_lines
from heedful.report.phrases import (
    duration,
    percent,
    plain,
    policy_words,
    promise_name,
    signed,
    times,
)
from heedful.report.report_table import ReportTable
from heedful.types import Spec


def alarms(evaluation: Evaluation) -> list[str]:
    """What a reader must know before the result."""
    warnings = () if evaluation.words is None else evaluation.words.warnings
    sentences = [line for warning in warnings for line in warning_lines(warning)]
    if evaluation.openings > 1:
        sentences.append(
            f"The test side was opened {evaluation.openings} times. Only the first opening is a test of the "
            "locked policy; its result may have influenced what came after."
        )
    if evaluation.lock.test_passes:
        sentences.append(
            f"{evaluation.lock.test_passes:,} passes of the test side had been recorded before the policy "
            "was locked; they may have influenced it."
        )
    if both := evaluation.repeats.straddling:
        repeated = sum(len(cluster.test) for cluster in both)
        sentences.append(
            f"The fit side also asks the questions of {repeated} of {evaluation.tasks} test rows, word for "
            "word or nearly; they are not new to the policy."
        )
    if problem := evaluation.crossfit_problem:
        sentences.append(f"{problem}, so the report leaves it out: run heedful study crossfit again.")
    for side, counts in evaluation.failed.items():
        if counts:
            total, by_source = sum(counts.values()), ", ".join(f"{s} {n}" for s, n in counts.items())
            sentences.append(
                f"On the {side} side, {total} passes failed ({by_source}); they count as no answer."
            )
    return sentences


def cost_table(evaluation: Evaluation) -> ReportTable:
    """What was decoded, and a lower bound of what rerunning would have cost."""
    cost = evaluation.cost

    def row(name: str, spend: Spend) -> tuple[str, ...]:
        return (name, f"{spend.passes:,}", f"{spend.calls:,}", f"{spend.tokens:,}", duration(spend.seconds))

    whole = Spend(
        passes=cost.fit.passes + cost.test.passes,
        calls=cost.model_calls,
        tokens=cost.fit.tokens + cost.test.tokens,
        seconds=cost.fit.seconds + cost.test.seconds,
    )
    return ReportTable(
        name="cost",
        title="Cost",
        note=(
            f"The recorded passes were enough to score {_policies(evaluation, cost.policies)} on "
            f"{cost.fit_rows:,} fit rows{_other_search(evaluation)} without further calls. The "
            "last row is a lower bound of the cost of rerunning them: at least one call per policy and row, "
            "at the mean cost of a pass without memory. Seconds are summed over passes, several of which ran "
            "at once."
        ),
        head=("", "Passes", "Model calls", "Tokens", "Seconds of decoding"),
        rows=(
            row("fit side", cost.fit),
            row("test side", cost.test),
            row("the study", whole),
            row("rerunning every policy, at least", cost.rerun),
        ),
        marked=frozenset({2}),
    )


def locked_table(evaluation: Evaluation) -> ReportTable:
    """What was fixed, with digests."""
    lock = evaluation.lock
    sides = ", ".join(f"{side} {len(ids):,}" for side, ids in lock.splits.items())
    dropped = ", ".join(f"{bank} {len(ids)}" for bank, ids in lock.dropped.items())
    rows = [
        ("locked at", lock.locked_at),
        ("lock", lock.lock),
        ("policy", policy_words(lock.policy)),
        ("benchmark", lock.benchmark),
        ("model", model_name(evaluation)),
        *((f"recall of {name}", _recall(spec)) for name, spec in lock.sources.items() if "recall" in spec),
        ("rows", f"{sides}; seeds {', '.join(map(str, lock.seeds))}"),
        ("entries dropped because their question is asked", dropped or "none"),
        ("planned statistics", "; ".join(lock.statistics)),
        *([("repeated questions", _repeats(evaluation.repeats))] if evaluation.repeats.questions else []),
        *([("heedful commit", lock.code.checkout)] if lock.code and lock.code.checkout else []),
        *((f"digest of {name}", digest) for name, digest in lock.digests.items()),
    ]
    return ReportTable(
        name="locked",
        title="What was locked",
        note="Fixed before the test side was opened; testing refuses to start if any of it changed.",
        head=("What", "Value"),
        rows=tuple(rows),
        words=frozenset({1}),
    )


def _repeats(repeats: Clusters) -> str:
    """How many questions are asked more than once, and how they were found."""
    rows = sum(len(cluster.fit) + len(cluster.test) for cluster in repeats.clusters)
    searched = (
        "only equal texts were searched for, because the weights of all-minilm-l6-v2 were missing"
        if repeats.near is None
        else f"equal texts, and texts with a similarity of {repeats.near:g} or more"
        + (" and the same numbers" if repeats.same_numbers else "")
    )
    return f"{len(repeats.clusters)} clusters of {rows} rows count once each ({searched})"


def _recall(spec: Spec) -> str:
    """How a source recalls, from its recorded settings."""
    similar = f", similarity of at least {spec['threshold']}" if "threshold" in spec else ""
    limit = f"; at most {spec['limit']} entries" if "limit" in spec else ""
    return f"{spec['recall']}{similar}{limit}, placement {spec.get('placement', 'unknown')}"


def model_name(evaluation: Evaluation) -> str:
    """The model's name without a folder: a report is the same on every machine."""
    return evaluation.lock.model.name.replace("\\", "/").rstrip("/").rpartition("/")[2] or "default"


def journal_table(evaluation: Evaluation) -> ReportTable:
    """Every event of the study."""
    mine = evaluation.lock.lock
    opened = [at for at, event in enumerate(evaluation.events) if event.event == OPENED]
    return ReportTable(
        name="journal",
        title="Event log of the study",
        note=f"The test side was opened {times(evaluation.openings)}.",
        head=("Time", "Event", "Lock"),
        rows=tuple(
            (
                event.at,
                event.event,
                event.lock[:12] + (" (a different lock)" if event.lock not in ("", mine) else ""),
            )
            for event in evaluation.events
        ),
        warned=frozenset(opened[1:]),
        words=frozenset({1, 2}),
        empty="the event log is empty",
    )


def fit_table(evaluation: Evaluation) -> ReportTable:
    """The best kinds by cross-validation, and the optimism of the choice."""
    story = evaluation.lock.fit
    return ReportTable(
        name="fit",
        title="How the policy was chosen",
        note=f"{_choice(evaluation)} The table lists the best kinds by cross-validation.",
        head=("Kind", "Objective", "Accuracy", "Calls"),
        rows=tuple(
            (str(one.kind), plain(one.objective, 4), percent(one.accuracy), plain(one.calls))
            for one in story.leaders
        ),
    )


def _choice(evaluation: Evaluation) -> str:
    """The chosen kind, and its objective on rows that it was tuned on and on others."""
    story = evaluation.lock.fit
    policies = _policies(evaluation, story.policies or evaluation.cost.policies)
    searched, held_out = f"{policies} on {evaluation.lock.choosing_rows:,} fit rows", story.held_out_objective
    if not story.tuned:
        return (
            f"{story.kind}, which no row of the study tuned. Objective (accuracy minus the cost of calls): "
            f"{plain(held_out, 4)} on the fit rows that compare certified policies. The search for policies "
            f"to tune scored {searched}."
        )
    return (
        f"{story.kind}, chosen out of {searched}. Objective (accuracy minus the cost of calls): "
        f"{plain(story.objective, 4)} on these rows, {plain(held_out, 4)} on fit rows it was not tuned on; "
        f"optimism {signed(story.optimism, 4)}."
    )


def _other_search(evaluation: Evaluation) -> str:
    """The search under a promise, whose grid has other thresholds because it sees fewer rows."""
    story, cost = evaluation.lock.fit, evaluation.cost
    if story.policies in (0, cost.policies):
        return ""
    return (
        f" (the search without the {promise_name(story.certificate)}; the one under it scored "
        f"{story.policies:,} on {evaluation.lock.choosing_rows:,} of them)"
    )


def _policies(evaluation: Evaluation, scored: int) -> str:
    """How many policies were scored; if the lock did not count them, those on its path."""
    least = "" if evaluation.lock.fit.policies else "at least "
    return f"{least}{scored:,} policies"
