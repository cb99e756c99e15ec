"""Memory: the effect of each entry, and its state."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import get_args

from heedful.dashboard.entry_table import SORTS, EntryChoice, effect_cell, entries_table
from heedful.dashboard.layout import filters, note, section, select, table
from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.view import DashboardView, Page, PageRequest
from heedful.governance.evidence import EntryStanding, standings
from heedful.governance.groups import GroupStanding, group_standings
from heedful.types import State

PER_PAGE = 50


async def memory_page(view: DashboardView, request: PageRequest) -> Page:
    banks = await view.store.banks()
    if not banks:
        empty = element("p", "There are no banks yet; heedful bank import FILE creates one.", class_="empty")
        return Page(title="Memory", section="memory", body=empty)
    choice = _choice(request, banks)
    entries, evidence = await view.store.entries(choice.bank), await view.store.evidence(choice.bank)
    groups = await asyncio.to_thread(group_standings, choice.bank, entries, evidence)
    found = await asyncio.to_thread(standings, entries, evidence)
    recalls = await view.journal.recalls(choice.bank)
    chosen = ordered(found, choice, groups, recalls)
    shown = chosen[(choice.page - 1) * PER_PAGE : choice.page * PER_PAGE]
    body = join(
        [
            _filters(choice, banks, groups),
            entries_table(shown, choice, recalls, request),
            _pages(choice, len(chosen)),
            note(
                "An effect is the mean over distinct graded tasks, from −1 (always hurts) to 1 (always "
                "helps), with a 95% interval that is valid however often you look. Entries that are recalled "
                "together share an outcome."
            ),
            section("Groups", _groups_table(groups)),
        ]
    )
    return Page(title="Memory", section="memory", body=body)


def _choice(request: PageRequest, banks: Mapping[str, int]) -> EntryChoice:
    bank, state = request.asked("bank"), request.asked("state")
    sort = request.asked("sort") or "harm"
    return EntryChoice(
        bank=bank if bank is not None and bank in banks else next(iter(banks)),
        state=state if state in get_args(State) else None,
        group=request.asked("group"),
        sort=sort if sort in SORTS else "harm",
        page=request.page,
    )


def ordered(
    found: Sequence[EntryStanding],
    choice: EntryChoice,
    groups: Sequence[GroupStanding],
    recalls: Mapping[str, int],
) -> list[EntryStanding]:
    """The chosen entries in the chosen order."""
    members = next((group.ids for group in groups if group_title(group) == choice.group), None)
    kept = [
        one
        for one in found
        if choice.state in (None, one.entry.state) and (members is None or one.entry.id in members)
    ]
    if choice.sort == "id":
        return sorted(kept, key=lambda one: one.entry.id)
    if choice.sort == "recalls":
        return sorted(kept, key=lambda one: (-recalls.get(one.entry.id, 0), one.entry.id))
    return sorted(kept, key=_harm)


def _harm(one: EntryStanding) -> tuple[bool, bool, float, int, float, str]:
    """Net harm, then hurts; ungraded entries come after graded ones, and those out of use last."""
    net = sum(one.utilities)
    return not one.entry.live, not one.utilities, min(net, 0.0), -one.hurts, net, one.entry.id


def group_title(group: GroupStanding) -> str:
    return f"{group.kind} {group.name}"


def _filters(choice: EntryChoice, banks: Mapping[str, int], groups: Sequence[GroupStanding]) -> Markup:
    titles = {group_title(group): group_title(group) for group in groups}
    states = {state: state for state in get_args(State)}
    return filters(
        "/memory",
        select("Bank", "bank", {name: f"{name} ({n})" for name, n in banks.items()}, choice.bank),
        select("State", "state", {"": "any", **states}, choice.state),
        select("Group", "group", {"": "any", **titles}, choice.group),
        select("Order", "sort", SORTS, choice.sort),
    )


def _pages(choice: EntryChoice, n: int) -> Markup | None:
    last = max(1, -(-n // PER_PAGE))
    if last == 1:
        return None
    links = [
        element("a", words, href=choice.path(page), rel=rel)
        for words, page, rel in (("← Previous", choice.page - 1, "prev"), ("Next →", choice.page + 1, "next"))
        if 1 <= page <= last
    ]
    return element(
        "nav", links, f" page {choice.page} of {last}, {n:,} entries", class_="pages", aria_label="Pages"
    )


def _groups_table(groups: Sequence[GroupStanding]) -> Markup:
    rows = []
    for group in sorted(groups, key=lambda group: sum(group.utilities())):
        utilities = group.utilities()
        counts = (
            len(group.ids),
            len(utilities),
            sum(u > 0 for u in utilities),
            sum(u < 0 for u in utilities),
        )
        rows.append([group_title(group), *(f"{count:,}" for count in counts), effect_cell(utilities)])
    head = ("Group", "Entries", "Graded tasks", "Helps", "Hurts", "Effect")
    return table(
        "Entries that are judged together, most harm first",
        head,
        rows,
        numbers=(1, 2, 3, 4),
        empty="No group has evidence about at least two of its entries yet.",
    )
