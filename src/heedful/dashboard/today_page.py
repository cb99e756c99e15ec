"""Today: is memory helping?"""

from typing import cast

from heedful.dashboard.effects import EffectCounts, share_interval
from heedful.dashboard.layout import choice_links, link, note, section, table, tile
from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.today import SECONDS, WORDS, Today, WindowName, headline, today_of
from heedful.dashboard.view import DashboardView, Page, PageRequest
from heedful.records import DecisionFilter
from heedful.report.phrases import change, points, share
from heedful.trials import TrialEffect, trial_effect

MOST_GRADED = 5_000
MOST_TIMED = 2_000
MOST_IN_TRIAL = 1_000
"""Newest decisions of a window that are read one by one."""


async def today_page(view: DashboardView, request: PageRequest) -> Page:
    window = window_of(request)
    since = view.clock() - SECONDS[window]
    wanted = DecisionFilter(since=since)
    graded = await view.journal.facts(DecisionFilter(since=since, graded=True), MOST_GRADED)
    recent = await view.journal.facts(wanted, MOST_TIMED)
    in_trial = await view.journal.select(DecisionFilter(since=since, graded=True, coin=True), MOST_IN_TRIAL)
    today = today_of(window, await view.journal.traffic(wanted), graded, recent)
    sentence, tone = headline(today)
    body = join(
        [
            element("p", sentence, class_=f"headline {tone}", role="status"),
            choice_links("Last", "/", "window", WORDS, window),
            _effect_tiles(today.effects),
            _trial(trial_effect(in_trial, await view.feedback.of(in_trial))),
            _traffic_tiles(today, window),
            _costs(today),
        ]
    )
    return Page(title="Today", section="today", body=body)


def window_of(request: PageRequest, default: WindowName = "day") -> WindowName:
    """The window that a request asks for."""
    asked = request.asked("window")
    return cast(WindowName, asked) if asked in SECONDS else default


def _effect_tiles(effects: EffectCounts | None) -> Markup:
    if effects is None:
        grade = "Grade answers with heedful feedback, or over HTTP at /v1/feedback."
        return section("Effect of memory", element("p", f"No graded answers. {grade}", class_="empty"))
    tiles = []
    if net := effects.net:
        limits = f"[{points(net.low)}, {points(net.high)}]"
        tiles = [
            _share_tile("Helps", effects.helps, effects.proven),
            _share_tile("Hurts", effects.hurts, effects.proven),
            tile("Net effect in points", points(net.value), f"n = {net.n:,}", limits, tone=effects.tone),
        ]
    if effects.judged:
        tiles.append(_share_tile("Right answers", effects.right, effects.judged))
    return section(
        "Effect of memory", element("dl", tiles, class_="tiles"), note(_caution(effects, MOST_GRADED))
    )


def _share_tile(name: str, hits: int, n: int, of: str = "") -> Markup:
    return tile(name, f"{hits:,}", f"of {n:,}{of}", share(share_interval(hits, n)))


def _caution(effects: EffectCounts, most: int) -> str:
    """What the numbers do not say."""
    sentences = [
        f"{effects.unproven:,} more graded answers were changed by memory, but their feedback does not "
        "compare them with the answer without memory, so they do not count."
        if effects.unproven
        else "",
        f"Only the newest {most:,} graded answers count." if effects.graded == most else "",
        "95% intervals; that of the net effect is valid however often you look.",
        "People choose which answers they grade, so graded answers may differ from the rest.",
    ]
    return " ".join(filter(None, sentences))


def _trial(effect: TrialEffect) -> Markup | None:
    """The randomised comparison, if both of its sides have graded answers."""
    difference = effect.difference
    if difference is None:
        return None
    rows = [
        ("Memory used", effect.used_right, effect.used),
        ("Memory held out", effect.held_out_right, effect.held_out),
    ]
    cells = [[name, f"{right:,}", share(share_interval(right, n)), f"{n:,}"] for name, right, n in rows]
    text = f"Where a coin decided, memory changed the share of right answers by {change(difference)} points."
    return section(
        "Randomised trial",
        element("p", text),
        table("Graded answers", ("Coin", "Right", "Share", "n"), cells, numbers=(1, 2, 3), empty=""),
    )


def _traffic_tiles(today: Today, window: WindowName) -> Markup:
    answers, consulted = today.answers, today.consulted
    n = answers.decisions
    if not n:
        return section("Traffic", element("p", "No answers in this window.", class_="empty"))
    listed = element("a", "list them", href=link("/decisions", {"window": window}))
    tiles = [tile("Answers", f"{n:,}", listed), _share_tile("Consulted memory", consulted.decisions, n)]
    if consulted.decisions:
        tiles.append(_share_tile("Accepted", today.accepted, consulted.decisions, " consulted"))
    tiles += [
        tile("Calls per answer", f"{answers.calls / n:.2f}", "mean", f"n = {n:,}"),
        tile("Tokens per answer", f"{answers.tokens / n:,.0f}", "mean", f"n = {n:,}"),
        tile(
            "Survived faults",
            f"{answers.faulty:,}",
            f"of {n:,} answers",
            tone="loss" if answers.faulty else "",
        ),
    ]
    return section("Traffic", element("dl", tiles, class_="tiles"))


def _costs(today: Today) -> Markup:
    kinds = (
        ("First answer kept", today.kept, today.kept_latency),
        ("With a second pass", today.consulted, today.consulted_latency),
    )
    rows = [
        [
            name,
            f"{sums.calls / sums.decisions:.2f}",
            f"{sums.tokens / sums.decisions:,.0f}",
            *(f"{seconds:.2f} s" for seconds in (timed.median, timed.p95)),
            f"{sums.decisions:,}",
        ]
        for name, sums, timed in kinds
        if timed is not None
    ]
    head = ("Answers", "Calls", "Tokens", "Median time", "95th percentile", "n")
    empty = "No answers in this window."
    return section(
        "Cost of the second pass",
        table("Per answer", head, rows, numbers=range(1, 6), empty=empty),
        note(f"Times are those of the newest {MOST_TIMED:,} answers at most.") if rows else None,
    )
