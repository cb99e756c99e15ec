"""The same questions under no memory, always-retrieve and heedful, each prompt decoded once."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from heedful import arms
from heedful.control import Controller
from heedful.demo.scenario import POLICY, SOURCE, Question, is_right
from heedful.models.recorded import RecordedModel
from heedful.ports import Journal, Model, Source
from heedful.types import Outcome, Policy

AT_ONCE = 4
"""Questions under way together: as many as the model has slots, so that none waits inside its timing."""
ARMS: Mapping[str, Policy] = {"heedful": POLICY, "never": arms.never(), "always": arms.always(SOURCE)}
"""heedful goes first, so that the time it records is the time it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmScore:
    """How one arm did."""

    n: int
    right: int
    helps: int
    """Wrong without memory, right in the end."""
    hurts: int
    """Right without memory, wrong in the end."""
    calls_per_question: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryScore:
    """What an entry did under always-retrieve, as one of those in the prompt."""

    entry: str
    helps: int
    hurts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    questions: Sequence[Question]
    outcomes: Mapping[str, Sequence[Outcome]]
    """Per arm, in the order of the questions."""

    def score(self, arm: str) -> ArmScore:
        outcomes, n = self.outcomes[arm], len(self.questions)
        effects = Counter(self.effect(arm, place) for place in range(n))
        return ArmScore(
            n=n,
            right=sum(self.right(arm, place) for place in range(n)),
            helps=effects["help"],
            hurts=effects["hurt"],
            calls_per_question=sum(outcome.calls for outcome in outcomes) / n,
        )

    def right(self, arm: str, place: int) -> bool:
        return is_right(self.questions[place], self.outcomes[arm][place].answer)

    def effect(self, arm: str, place: int) -> str:
        """`help`, `hurt` or `same`, against the answer without memory."""
        before, after = self.right("never", place), self.right(arm, place)
        return "same" if before == after else "help" if after else "hurt"

    def entry_scores(self) -> list[EntryScore]:
        """Entries that were in the prompt when always-retrieve hurt, most harmful first."""
        helps: Counter[str] = Counter()
        hurts: Counter[str] = Counter()
        for place, outcome in enumerate(self.outcomes["always"]):
            tally = {"help": helps, "hurt": hurts}.get(self.effect("always", place))
            if tally is not None:
                tally.update(recall.entry.id for recall in outcome.baseline.recalls)
        worst = sorted(hurts, key=lambda entry: (helps[entry] - hurts[entry], entry))
        return [EntryScore(entry=entry, helps=helps[entry], hurts=hurts[entry]) for entry in worst]

    def telling(self) -> int:
        """The question that shows best what heedful does: harm undone, else help taken."""
        places = range(len(self.questions))
        undone = [p for p in places if self.effect("always", p) == "hurt" and self.right("heedful", p)]
        rolled_back = [p for p in undone if self.outcomes["heedful"][p].candidates]
        helped = [p for p in places if self.effect("heedful", p) == "help"]
        return next(iter([*rolled_back, *undone, *helped, 0]))


async def compare(
    model: Model,
    source: Source,
    questions: Sequence[Question],
    *,
    journal: Journal | None = None,
    on_answer: Callable[[str], None] = lambda arm: None,
) -> Comparison:
    """Answer every question under every arm; heedful's decisions go to the journal."""
    recorded = RecordedModel(model)
    slots = asyncio.Semaphore(AT_ONCE)
    outcomes = {}
    for arm, policy in ARMS.items():
        controller = Controller(model=recorded, policy=policy, sources={SOURCE: source})
        if arm == "heedful":
            controller = replace(controller, journal=journal)

        async def answer(question: Question, controller: Controller = controller, arm: str = arm) -> Outcome:
            async with slots:
                outcome = await controller.answer(question.task)
            on_answer(arm)
            return outcome

        outcomes[arm] = await asyncio.gather(*(answer(question) for question in questions))
    return Comparison(questions=questions, outcomes=outcomes)
