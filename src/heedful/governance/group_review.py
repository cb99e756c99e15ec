"""Judge groups before entries, with half of the error."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.governance.bounds import GROUP_RULES
from heedful.governance.groups import GroupStanding
from heedful.governance.judge import Judgement, judge
from heedful.governance.terms import RetirementTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCondemnation:
    """A condemned group: whether it goes as a whole, and why."""

    group: GroupStanding
    utilities: tuple[float, ...]
    judgement: Judgement
    going: bool
    reason: str

    @property
    def title(self) -> str:
        return f"{self.group.kind} {self.group.name}"


def group_shares(groups: Sequence[GroupStanding], delta: float) -> list[float]:
    """The error of each group: the kinds of group share δ evenly, and so do the groups of a kind."""
    of_kind = Counter(group.kind for group in groups)
    return [delta / len(of_kind) / of_kind[group.kind] for group in groups]


def review_groups(
    groups: Sequence[GroupStanding], terms: RetirementTerms, delta: float, room: int
) -> list[GroupCondemnation]:
    """The condemned groups, in the given order; `room` is the number of entries that may go.

    A task that recalled an entry of a condemned group says nothing about later groups. So if a source
    explains the harm of its bank, only the source is condemned.
    """
    condemned: list[GroupCondemnation] = []
    blamed: frozenset[str] = frozenset()
    leaving: set[str] = set()
    for group, share in zip(groups, group_shares(groups, delta), strict=True):
        utilities = group.utilities(blamed)
        judgement = judge(utilities, terms.rule, share, GROUP_RULES)
        if not judgement.condemned:
            continue
        active = {entry.id for entry in group.entries if entry.state == "active"} - leaving
        problem = _problem(group, terms, len(active), room - len(leaving))
        if not problem:
            leaving |= active
        blamed |= group.ids
        reason = judgement.reason
        reason += "; compared with recall without the group" if group.left_out else ""
        reason += f"; stays: {problem}" if problem else ""
        condemned.append(
            GroupCondemnation(
                group=group, utilities=utilities, judgement=judgement, going=not problem, reason=reason
            )
        )
    return condemned


def _problem(group: GroupStanding, terms: RetirementTerms, active: int, room: int) -> str:
    """Why a condemned group stays; empty: it goes."""
    if not any(map(terms.moves, group.entries)):
        return "its entries are protected or already in quarantine"
    if active > room:
        return (
            f"{active} of its entries are active, and at most {terms.max_share:.0%} of a bank is removed "
            "at once; a higher --max-share lets it go, else its entries are judged one by one"
        )
    return ""
