"""Policy: where the threshold lies, and whether confidence deserves its trust."""

from collections.abc import Sequence

from heedful.dashboard.charts import curve_chart
from heedful.dashboard.curves import LEAST, CurvePoint, reliability, risk_coverage
from heedful.dashboard.effects import first_right
from heedful.dashboard.layout import choice_links, note, section, table
from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.routing_chart import routing_chart, routing_values
from heedful.dashboard.running_rollout import running_rollout
from heedful.dashboard.today import SECONDS, WORDS, WindowName
from heedful.dashboard.today_page import window_of
from heedful.dashboard.view import DashboardView, LockedPolicy, Page, PageRequest
from heedful.records import DecisionFacts, DecisionFilter
from heedful.report.phrases import MINUS, policy_words, share
from heedful.types import OWN_ROWS, Policy

MOST = 5_000
"""Newest decisions of a window that are read."""
FROM_0_TO_1 = frozenset({"calibrated", "agreement", "ptrue", "stated"})
"""Signals that are probabilities, so that they can be compared with shares of right answers."""


async def policy_page(view: DashboardView, request: PageRequest) -> Page:
    window, locked = window_of(request, "week"), view.locked()
    since = view.clock() - SECONDS[window]
    facts = await view.journal.facts(DecisionFilter(since=since), MOST)
    policy = await _policy(view, locked)
    body = join(
        [
            _locked(locked, facts, window),
            *([] if policy is None else await running_rollout(view, policy[0], since)),
            choice_links("Last", "/policy", "window", WORDS, window),
            *([] if policy is None else await _curves(view, policy, facts, window)),
        ]
    )
    return Page(title="Policy", section="policy", body=body)


async def _policy(view: DashboardView, locked: LockedPolicy | None) -> tuple[str, Policy] | None:
    """The policy that answers and its id; by the newest decision if nothing is locked."""
    if locked is not None:
        return locked.policy_id, locked.policy
    newest = await view.journal.select(DecisionFilter(), 1)
    return (newest[0].policy_id, newest[0].policy) if newest else None


def _locked(locked: LockedPolicy | None, facts: Sequence[DecisionFacts], window: WindowName) -> Markup:
    if locked is None:
        text = "No policy is known to the server; the charts show the policy of the newest decision."
        return section("What answers", element("p", text, class_="empty"))
    others = sum(one.policy != locked.policy_id for one in facts)
    moved = [f"{name} changed since the lock." for name in locked.moved]
    if others:
        span = WORDS[window]
        moved.append(f"Another policy gave {others:,} of {len(facts):,} answers in the last {span}.")
    rows = [
        ("Policy", f"{locked.policy_id}{'' if locked.lock else ' (not locked: no study chose it)'}"),
        *((("Locked", f"{locked.study}, {locked.locked_at} ({locked.lock[:12]})"),) if locked.lock else ()),
        *((("Model", locked.model),) if locked.model else ()),
        *((f"Bank of {name}", f"{n:,} entries") for name, n in locked.entries.items()),
    ]
    return section(
        "What answers",
        element("p", _policy_words(locked.policy), class_="headline plain"),
        [element("p", text, class_="alarm", role="alert") for text in moved],
        element("p", "Nothing changed since the lock.", class_="fine") if locked.lock and not moved else None,
        element("dl", [join([element("dt", n), element("dd", v)]) for n, v in rows], class_="pairs"),
    )


def _policy_words(policy: Policy) -> str:
    """The policy in sentences; the name of a prior is marked as a name."""
    words = policy_words(policy)
    trees = None if policy.value is None else policy.value.trees
    if trees is not None and (prior := trees if trees.origin != OWN_ROWS else trees.prior) is not None:
        return words.replace(f"the prior {prior.origin})", f"the shipped prior “{prior.origin}”)")
    return words


async def _curves(
    view: DashboardView, named: tuple[str, Policy], facts: Sequence[DecisionFacts], window: WindowName
) -> list[Markup]:
    id, policy = named
    since = view.clock() - SECONDS[window]
    graded = await view.journal.facts(DecisionFilter(since=since, graded=True, policy=id), MOST)
    pairs = [
        (one.confidence, right)
        for one in graded
        if one.confidence is not None and (right := first_right(one)) is not None
    ]
    own = [one for one in facts if one.policy == id]
    values = routing_values(policy, own)
    counted = note(_counted(len(values), len(own), len(facts), window)) if facts else None
    return [
        section("Routing", routing_chart(policy, values), counted),
        section("Does confidence tell right from wrong?", _trust(policy, pairs)),
    ]


def _counted(shown: int, own: int, read: int, window: WindowName) -> str:
    """Which answers the chart counts, and why Today counts others."""
    left_out = (
        f"{read - own:,} of another policy" if read > own else "",
        f"{own - shown:,} without a confidence" if own > shown else "",
    )
    reasons = " and ".join(filter(None, left_out))
    newest = f"the newest {MOST:,}" if read == MOST else f"{read:,}"
    return (
        f"The chart counts {shown:,} of {newest} answers in the last {WORDS[window]}"
        f"{f'; it leaves out {reasons}' if reasons else ''}. "
        "Today counts every answer in the window that is chosen there."
    )


def _trust(policy: Policy, pairs: Sequence[tuple[float, bool]]) -> Markup:
    if len(pairs) < LEAST:
        text = f"{len(pairs)} first answers of this policy are graded; a curve needs at least {LEAST}."
        return element("p", text, class_="empty")
    probability = policy.combine == "value" or policy.signal in FROM_0_TO_1
    name = "estimated chance of being right" if policy.combine == "value" else f"confidence ({policy.signal})"
    covered, bins = risk_coverage(pairs), reliability(pairs)
    surest = curve_chart(covered, "surest share of the answers, %", _words(covered), span=(0, 100))
    span = (0.0, 1.0) if probability else None
    by_bin = curve_chart(bins, name, _words(bins), span=span, diagonal=probability)
    good = "The dotted diagonal is perfect." if probability else "A rising line is good."
    return join(
        [
            element(
                "div",
                _figure(
                    surest, "Risk and coverage: right first answers among the surest. A falling line is good."
                ),
                _figure(by_bin, f"Reliability: right first answers by {name}. {good}"),
                class_="side-by-side",
            ),
            element(
                "details",
                element("summary", "The numbers"),
                _numbers("Risk and coverage", "Surest share", covered, "{:.0f}%"),
                _numbers("Reliability", "Mean confidence", bins, "{:.3f}"),
            ),
            note(f"{len(pairs):,} graded first answers, 95% Wilson intervals."),
        ]
    )


def _figure(chart: Markup, caption: str) -> Markup:
    return element("figure", chart, element("figcaption", caption))


def _words(points: Sequence[CurvePoint]) -> str:
    first, last = points[0], points[-1]
    ends = [f"{share(point.right)} at {point.x:.3g}" for point in (first, last)]
    return f"Share of right answers from {ends[0]} to {ends[1]}."


def _numbers(caption: str, name: str, points: Sequence[CurvePoint], shape: str) -> Markup:
    rows = [
        [shape.format(point.x).replace("-", MINUS), share(point.right), f"{point.right.n:,}"]
        for point in points
    ]
    return table(caption, (name, "Right", "n"), rows, numbers=(1, 2), empty="", narrow=True)
