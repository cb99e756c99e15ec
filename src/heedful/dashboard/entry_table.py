"""The table of entries, with the forms that change their states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.dashboard.charts import interval_bar
from heedful.dashboard.layout import link, table
from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.view import PageRequest
from heedful.governance.bounds import betting_interval
from heedful.governance.evidence import SURELY, EntryStanding
from heedful.report.phrases import signed
from heedful.types import State

SORTS = {"harm": "most harm first", "recalls": "most recalls first", "id": "by id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChoice:
    """Which entries of which bank are shown, and in which order."""

    bank: str
    state: str | None
    group: str | None
    """Kind and name, as in `source handbook`."""
    sort: str
    page: int

    def path(self, page: int) -> str:
        query = {"bank": self.bank, "state": self.state, "group": self.group, "sort": self.sort}
        return link("/memory", {**query, "page": str(page)})


def entries_table(
    shown: Sequence[EntryStanding], choice: EntryChoice, recalls: Mapping[str, int], request: PageRequest
) -> Markup:
    """The entries of a page; admins get forms to change them."""
    head = ["Entry", "State", "Recalls", "Graded tasks", "Helps", "Hurts", "Effect"]
    rows = []
    for one in shown:
        entry = one.entry
        cells: list[str | Markup] = [
            _entry_cell(one, choice.bank),
            element("span", entry.state, element("small", entry.reason), class_=f"state {entry.state}"),
            f"{recalls.get(entry.id, 0):,}",
            *(f"{count:,}" for count in (one.tasks, one.helps, one.hurts)),
            effect_cell(one.utilities),
        ]
        rows.append([*cells, _actions(one, choice, request)] if request.viewer.admin else cells)
    head += ["Change"] if request.viewer.admin else []
    caption = f"Entries of bank {choice.bank}, {SORTS[choice.sort]}"
    return table(caption, head, rows, numbers=(2, 3, 4, 5), empty="No entry passes these filters.")


def _entry_cell(one: EntryStanding, bank: str) -> Markup:
    entry = one.entry
    answer = element("span", f"→ {entry.response}", class_="text") if entry.response else None
    about = " · ".join((entry.kind, *((entry.source,) if entry.source else ()), *entry.tags))
    uses = element("a", entry.id, href=link("/decisions", {"bank": bank, "entry": entry.id}))
    return join([element("span", entry.text, class_="text"), answer, element("small", uses, f" · {about}")])


def effect_cell(utilities: Sequence[float]) -> Markup:
    """The mean utility with its interval, as a bar and as numbers."""
    if not utilities:
        return element("span", "not graded", class_="empty")
    (low, high), mean = betting_interval(utilities, SURELY), sum(utilities) / len(utilities)
    words = f"{signed(mean, 2)} [{signed(low, 2)}, {signed(high, 2)}]"
    bar = interval_bar(low, mean, high, f"Effect {words} on {len(utilities)} tasks")
    return element("span", bar, element("small", words), class_="effect")


def _actions(one: EntryStanding, choice: EntryChoice, request: PageRequest) -> Markup:
    entry = one.entry
    forms = []
    if entry.state in ("active", "quarantined"):
        forms.append(_form("Retire", "retired", one, choice, request))
    if entry.state != "active":
        forms.append(_form("Restore", "active", one, choice, request))
    return join(forms)


def _form(verb: str, state: State, one: EntryStanding, choice: EntryChoice, request: PageRequest) -> Markup:
    """A form that opens on demand; it works without a script."""
    hidden = {"token": request.token, "bank": choice.bank, "entry": one.entry.id, "state": state}
    hidden["back"] = choice.path(choice.page)
    form = element(
        "form",
        [element("input", type="hidden", name=name, value=value) for name, value in hidden.items()],
        element("label", "Reason", element("input", name="reason", required=True, maxlength=500)),
        element("button", f"{verb} {one.entry.id}", type="submit"),
        method="post",
        action="/memory/mark",
    )
    return element("details", element("summary", f"{verb}…", aria_label=f"{verb} {one.entry.id}…"), form)
