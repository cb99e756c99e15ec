"""Run the demo's study from the first recording to the test side."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heedful import arms
from heedful.control import Controller
from heedful.demo.scenario import SOURCE, write_study
from heedful.memory import answer_similarity
from heedful.ports import Journal, Model
from heedful.protocol.record import RecordingProgress
from heedful.protocol.replay import PolicyReplay, Replayer
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.workflow import fit_study, lock_study, open_test_side, record, side_table
from heedful.protocol.workspace import Workspace
from heedful.types import Item, Outcome, Policy, Side

Tell = Callable[[Side, RecordingProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmScore:
    """The result of one arm on the test side."""

    n: int
    right: int
    helps: int
    """Wrong without memory, right in the end."""
    hurts: int
    """Right without memory, wrong in the end."""
    calls_per_question: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryScore:
    """The effect under always-retrieve of the prompts that contained an entry."""

    entry: str
    helps: int
    hurts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The test side under three arms, all replayed from the same recorded passes."""

    setup: StudySetup
    policy: Policy
    """The locked policy."""
    replayer: Replayer
    arms: Mapping[str, PolicyReplay]

    @property
    def questions(self) -> list[Item]:
        return list(self.setup.splits.test)

    def score(self, arm: str) -> ArmScore:
        done, before = self.arms[arm], self.replayer.base_right
        return ArmScore(
            n=len(before),
            right=int(done.right.sum()),
            helps=int((done.right & ~before).sum()),
            hurts=int((before & ~done.right).sum()),
            calls_per_question=float(done.calls.mean()),
        )

    def always_answer(self, place: int) -> str:
        return self.replayer.first(SOURCE).passes[place].answer

    def entry_scores(self) -> list[EntryScore]:
        """Entries that were in the prompt when always-retrieve hurt, most harmful first."""
        helps: Counter[str] = Counter()
        hurts: Counter[str] = Counter()
        rows = zip(self.replayer.base_right, self.arms["always"].right, strict=True)
        for place, (before, after) in enumerate(rows):
            if before != after:
                recalls = self.replayer.table.column(SOURCE).passes[place].recalls
                (helps if after else hurts).update(recall.entry for recall in recalls)
        worst = sorted(hurts, key=lambda entry: (helps[entry] - hurts[entry], entry))
        return [EntryScore(entry=entry, helps=helps[entry], hurts=hurts[entry]) for entry in worst]

    def telling(self) -> int:
        """The position of the question to show: one where heedful avoided harm, or else one it fixed."""
        before, done = self.replayer.base_right, self.arms["heedful"]
        undone = before & ~self.arms["always"].right & done.right
        for kind in (undone & done.consulted, undone, done.right & ~before):
            if kind.any():
                return int(kind.argmax())
        return 0

    async def answer(self, place: int, model: Model, journal: Journal) -> Outcome:
        """Ask one question again, live and with the locked policy, to record its decision in the journal."""
        sources = {SOURCE: self.setup.sources("test", 0)[SOURCE]}
        controller = Controller(
            model=model,
            policy=self.policy,
            sources=sources,
            journal=journal,
            similarity=answer_similarity,
        )
        return await controller.answer(self.setup.benchmark.task(self.questions[place]))


async def run_demo(folder: Path, model: Model, limit: int | None, tell: Tell) -> DemoResult:
    """Record the fit side, choose a policy, lock it, open the test side."""
    write_study(folder, limit)
    space = Workspace(folder)
    setup = prepare(space.study, None)
    await record(space, setup, model, "fit", partial(tell, "fit"))
    fit_study(space, setup)
    lock = await lock_study(space, setup, model)
    await open_test_side(space, setup, model, partial(tell, "test"))
    replayer = Replayer(side_table(space, setup, "test"))
    policies = {"never": arms.never(), "always": arms.always(SOURCE), "heedful": lock.policy}
    return DemoResult(
        setup=setup,
        policy=lock.policy,
        replayer=replayer,
        arms={arm: replayer.replay(policy) for arm, policy in policies.items()},
    )
