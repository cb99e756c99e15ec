"""Memory from pool episodes, and nothing from those that a study plays."""

from collections.abc import Sequence

import pytest

from heedful import arms
from heedful.agents.hints import (
    FailedStep,
    GoldStep,
    failed_steps,
    failure_entry,
    fragments,
    gold_entries,
    gold_steps,
    pool_seeds,
    refuse_leaks,
    scoped,
)
from heedful.environments.webshop.catalogue import read_products
from heedful.environments.webshop.shop import WebShop
from heedful.errors import LeakError, UsageError
from heedful.memory.entries import new_entry
from heedful.types import Entry, Observation
from tests.agents.making import played
from tests.agents.toy_world import SIDES, BoxWorld
from tests.environments.making import write_products


def test_gold_paths_become_fragments_with_goal_situation_and_actions() -> None:
    entries = gold_entries(BoxWorld(), pool_seeds(BoxWorld()), limit=60)
    first = entries[0]
    assert first.text == "Open the red box in room 2.\nYou are in room 0."
    assert first.response == "Next action: go east\nAfter that: go east, open red box"
    assert (first.kind, first.tags, first.source) == ("hint", ("boxes",), "gold:100")
    assert len({entry.id for entry in entries}) == len(entries) <= 60


def test_steps_of_a_solution_that_change_nothing_are_left_out() -> None:
    class Detour(BoxWorld):
        def gold(self, seed: int) -> Sequence[str]:
            return ("go west", *super().gold(seed))

    assert [step.actions for step in gold_steps(Detour(), 3)] == [
        step.actions for step in gold_steps(BoxWorld(), 3)
    ]


@pytest.mark.parametrize(
    ("action", "advice"),
    [
        ("search[a red mug]", "search[(the words of your goal)]"),
        ("click[Red]", "click[(the color that your goal names)]"),
        ("click[women]", "click[(the fit type that your goal names)]"),
        ("click[b07]", "(the one that fits the goal best)"),
        ("click[buy now]", "click[buy now]"),
        ("go east", "go east"),
    ],
)
def test_words_stand_for_what_an_action_took_from_its_own_goal(action: str, advice: str) -> None:
    goal = "Find me a red mug with color: red, and fit type: women, and price lower than 9.00 dollars"
    step = GoldStep(before=Observation(text="A page.", goal=goal, subject="B07"), actions=(action,))
    (entry,) = fragments([step], seed=1)
    assert entry.response == f"Next action: {advice}"


def test_a_failed_episode_becomes_advice_for_the_step_that_left_the_solution() -> None:
    episode = played(arms.never(), seed=1)
    (step,) = failed_steps(BoxWorld(), [episode, played(arms.never(), seed=2)])
    entry = failure_entry(BoxWorld(), step)
    assert entry.text.endswith("You are in room 2.")
    assert entry.response == "Next action: open blue box\nDid not lead to the goal: open red box"


def test_entries_of_played_episodes_are_refused() -> None:
    entries = gold_entries(BoxWorld(), [3], limit=5)
    refuse_leaks(entries, BoxWorld(), {"test": range(3)})
    with pytest.raises(LeakError, match=entries[0].id) as refused:
        refuse_leaks(entries, BoxWorld(), {"test": range(5)})
    assert refused.value.exit_code == 4


def test_subjects_that_are_asked_about_give_no_memory(tmp_path_factory: pytest.TempPathFactory) -> None:
    shop = WebShop(read_products(write_products(tmp_path_factory.mktemp("data"), count=600)))
    seeds = pool_seeds(shop)
    asked = {shop.goals[seed].target.asin for side in ("fit", "test") for seed in shop.seeds(side)}
    assert seeds
    assert not asked & {shop.goals[seed].target.asin for seed in seeds}
    entry = gold_entries(shop, seeds, limit=1)[0]
    assert "(the one that fits the goal best)" in entry.response
    twin = next(seed for seed in shop.seeds("pool") if seed not in seeds)
    leaking = gold_entries(shop, [twin], limit=1)
    with pytest.raises(LeakError):
        refuse_leaks(leaking, shop, {"fit": shop.seeds("fit"), "test": shop.seeds("test")})


def test_memory_about_another_type_of_goal_is_left_out() -> None:
    def hint(*tags: str) -> Entry:
        return new_entry(f"note {tags}", kind="hint", tags=tags)

    entries = [hint(), hint("boxes"), hint("doors")]
    assert scoped(entries)("boxes") == entries[:2]
    assert scoped(entries)("") == entries


def test_a_world_without_solutions_says_so() -> None:
    class Mute:
        spec = BoxWorld().spec
        seeds = staticmethod(lambda side: SIDES[side])
        reset = staticmethod(BoxWorld().reset)
        step = staticmethod(BoxWorld().step)
        close = staticmethod(lambda: None)

    with pytest.raises(UsageError, match="no method gold"):
        gold_steps(Mute(), 1)


def test_a_step_that_the_solution_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="has no step 9"):
        failure_entry(BoxWorld(), FailedStep(1, 9, "sing"))
