import asyncio

import pytest

from heedful import ScriptedModel, Task
from heedful.sources import VoteSource
from heedful.types import Attempt, Decode

TASK = Task(question="How many?")


def voted(replies: list[str], **settings: object) -> tuple[Attempt, ScriptedModel]:
    waiting = iter(replies)
    model = ScriptedModel(script=lambda prompt: next(waiting))
    source = VoteSource(samples=len(replies), **settings)  # type: ignore[arg-type]

    async def attempt() -> Attempt:
        plan = await source.prepare(TASK, None)
        assert plan is not None
        return await source.attempt(plan, TASK, model, None)

    return asyncio.run(attempt()), model


@pytest.mark.parametrize(
    ("replies", "winner"),
    [
        (["4", "5", "5"], "5"),
        (["4", "5", "6"], "4"),
        (["4", "5", "5.", "4"], "4"),
        (["", "", "7"], "7"),
    ],
)
def test_the_most_frequent_answer_wins_the_earliest_on_a_tie_and_no_answer_has_no_vote(
    replies: list[str], winner: str
) -> None:
    assert voted(replies)[0].decode.answer == winner


def test_samples_differ_in_their_seed_only_and_the_seed_of_the_study_moves_them_all() -> None:
    runs = [voted(["a", "b", "c"], seed=seed, temperature=0.9)[1].prompts for seed in (2, 3)]
    assert len({prompt.seed for prompts in runs for prompt in prompts}) == 6
    assert {prompt.temperature for prompts in runs for prompt in prompts} == {0.9}
    assert len({prompt.messages for prompts in runs for prompt in prompts}) == 1


def test_a_sample_that_fails_fails_the_pass() -> None:
    waiting: list[Decode | Exception] = [Decode(text="a"), RuntimeError("no"), Decode(text="a")]
    replies = iter(waiting)

    async def attempt() -> Attempt:
        source = VoteSource()
        plan = await source.prepare(TASK, None)
        assert plan is not None
        return await source.attempt(plan, TASK, ScriptedModel(script=lambda prompt: next(replies)), None)

    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(attempt())
