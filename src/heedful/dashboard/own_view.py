"""The dashboard of one caller: their own decisions, and what their key allows of memory.

The pages do not know about it: they read ports that show nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.dashboard.view import WHERE_IDS_ARE, DashboardView, Reach
from heedful.errors import UsageError
from heedful.ports import DecisionReader, Store
from heedful.records import Decision, DecisionFacts, DecisionFilter, Traffic
from heedful.types import CALLER, Entry, Evidence, Mark, StateChange

ALL = 1_000_000
"""More decisions than a caller's evidence has."""


def own_view(view: DashboardView, reach: Reach) -> DashboardView:
    """The part of a dashboard that a caller may see."""
    journal = OwnJournal(view.journal, reach.caller)
    return replace(view, store=OwnStore(view.store, journal, reach), journal=journal, locked=reach.locked)


@dataclass(frozen=True, slots=True)
class OwnJournal:
    """Reads the decisions of one caller; any other is as unknown as one that never was."""

    journal: DecisionReader
    caller: str

    async def find(self, decision: str) -> Decision:
        unknown = UsageError(f"{decision!r} is not a recorded decision; {WHERE_IDS_ARE}")
        try:
            found = await self.journal.find(decision)
        except UsageError as error:
            raise unknown from error
        if found.task.scope.get(CALLER) != self.caller:
            raise unknown
        return found

    async def select(
        self, wanted: DecisionFilter, limit: int | None = None, skip: int = 0
    ) -> Sequence[Decision]:
        return await self.journal.select(self._own(wanted), limit, skip)

    async def facts(self, wanted: DecisionFilter, limit: int) -> Sequence[DecisionFacts]:
        return await self.journal.facts(self._own(wanted), limit)

    async def traffic(self, wanted: DecisionFilter) -> Sequence[Traffic]:
        return await self.journal.traffic(self._own(wanted))

    async def recalls(self, bank: str, caller: str | None = None) -> Mapping[str, int]:
        return await self.journal.recalls(bank, self.caller)

    def _own(self, wanted: DecisionFilter) -> DecisionFilter:
        return replace(wanted, caller=self.caller)


@dataclass(frozen=True, slots=True)
class OwnStore:
    """Reads the banks of a caller's key, without entries of foreign scopes and evidence of others."""

    store: Store
    journal: OwnJournal
    reach: Reach

    async def banks(self) -> Mapping[str, int]:
        names = [name for name in await self.store.banks() if self.reach.bank(name)]
        return {name: len(await self.entries(name)) for name in names}

    async def entries(self, bank: str) -> Sequence[Entry]:
        if not self.reach.bank(bank):
            return ()
        return [entry for entry in await self.store.entries(bank) if self._sees(entry)]

    async def entry(self, bank: str, entry: str) -> Entry:
        for known in await self.entries(bank):
            if known.id == entry:
                return known
        raise UsageError(f"bank {bank!r} has no entry {entry!r}")

    async def version(self, bank: str, entry: str, digest: str) -> Entry:
        known = await self.store.version(bank, entry, digest)
        if not self.reach.bank(bank) or not self._sees(known):
            raise UsageError(f"bank {bank!r} has no entry {entry!r}")
        return known

    async def versions(self, bank: str, entry: str) -> Sequence[Entry]:
        if not self.reach.bank(bank):
            return ()
        return [known for known in await self.store.versions(bank, entry) if self._sees(known)]

    async def evidence(self, bank: str) -> Sequence[Evidence]:
        own = {facts.id for facts in await self.journal.facts(DecisionFilter(graded=True), ALL)}
        return [seen for seen in await self.store.evidence(bank) if seen.decision in own]

    async def revision(self, bank: str) -> int:
        return await self.store.revision(bank)

    async def history(self, bank: str, entry: str) -> Sequence[StateChange]:
        return [change for change in await self.audit(bank) if change.entry == entry]

    async def audit(self, bank: str) -> Sequence[StateChange]:
        """Nothing: the log names the people and the reasons behind each change."""
        return ()

    async def put(self, bank: str, entries: Sequence[Entry]) -> int:
        raise _read_only()

    async def mark(self, bank: str, marks: Sequence[Mark]) -> Sequence[Entry]:
        raise _read_only()

    async def observe(self, bank: str, evidence: Sequence[Evidence]) -> None:
        raise _read_only()

    async def aclose(self) -> None:
        """The store belongs to the whole dashboard."""

    def _sees(self, entry: Entry) -> bool:
        return all(self.reach.scope(key, value) for key, value in entry.scope.items())


def _read_only() -> UsageError:
    return UsageError("this key may read memory only; ask an administrator")
