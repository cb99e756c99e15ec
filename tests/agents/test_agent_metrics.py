"""Agent metrics, computed by hand."""

import pytest

from heedful.agents.agent_metrics import arm_results, entry_results, pair_episodes
from heedful.agents.episode_record import End, EpisodeRecord, StepRecord
from heedful.errors import UsageError
from heedful.records import CandidateRecord, PassRecord, RecallRef
from heedful.types import Route, Usage, Verdict

ARMS = ("no memory", "threshold")
FIRST = PassRecord(source="none", prompt="p", model="m", status="decoded", answer="a")


def step(*, accepted: bool | None = None, valid: bool = True, entry: str = "e1") -> StepRecord:
    """A step; `accepted` None: memory was not asked."""
    recalled = PassRecord(
        source="memory",
        prompt="p",
        model="m",
        status="decoded",
        recalls=(RecallRef(entry=entry, version="v", score=0.8),),
    )
    verdict = Verdict(
        choice="accept" if accepted else "rollback", reason="margin met" if accepted else "margin"
    )
    asked = accepted is not None
    return StepRecord(
        observation="o",
        choices=3,
        first=FIRST,
        confidence=-0.5,
        route=Route(choice="consult" if asked else "keep", reason="unsure" if asked else "sure"),
        candidates=(CandidateRecord(record=recalled, confidence=-0.2, verdict=verdict),) if asked else (),
        verdict=verdict if asked else None,
        chosen=0 if accepted else None,
        action="b" if accepted else "a",
        first_action="a",
        second_action="b" if asked else "",
        valid=valid,
        score=0.0,
        calls=2 if asked else 1,
        usage=Usage(prompt_tokens=100, cached_tokens=60),
    )


def episode(arm: str, seed: int, score: float, *steps: StepRecord, end: End = "done") -> EpisodeRecord:
    names = {"side": "test", "policy": "p", "model": "m", "goal": "g"}
    return EpisodeRecord(arm=arm, seed=seed, score=score, steps=steps, end=end, **names)  # type: ignore[arg-type]


EPISODES = [
    *(
        episode("no memory", seed, score, step(), step(valid=seed != 2))
        for seed, score in enumerate((0, 1, 1, 0.5))
    ),
    episode("threshold", 0, 1.0, step(accepted=True, entry="good"), step(accepted=False)),
    episode("threshold", 1, 0.0, step(accepted=True, entry="bad"), step(accepted=True, entry="bad")),
    episode("threshold", 2, 1.0, step(), step()),
    episode("threshold", 3, 0.5, step(accepted=True, entry="good")),
]


def test_the_metrics_are_those_of_the_method() -> None:
    result = arm_results(pair_episodes(EPISODES, ARMS), seed=0)["threshold"]
    assert (result.success, result.score, result.helps, result.hurts) == (0.5, 0.625, 1, 1)
    assert result.har == pytest.approx(2 / 4)
    assert result.ltr == -1.0
    assert result.tr == pytest.approx(1 / 3)
    assert (result.routed, result.accepted, result.invalid) == (5 / 4, 1.0, 0.0)
    assert result.calls == pytest.approx((4 + 4 + 2 + 2) / 4)
    assert result.tokens_read == pytest.approx(7 * 40 / 12)
    assert result.reasons == {"margin": 1}
    assert result.delta["score"].value == pytest.approx(0.0)
    assert result.delta["score"].low < 0 < result.delta["score"].high
    assert result.delta["calls"].value == pytest.approx(1.0)


def test_an_arm_without_an_accepted_step_has_no_harmful_acceptance_rate() -> None:
    result = arm_results(pair_episodes(EPISODES, ARMS), seed=0)["no memory"]
    assert (result.har, result.helps, result.hurts, result.invalid) == (None, 0, 0, 0.25)


def test_an_episode_that_failed_in_one_arm_is_left_out_of_all() -> None:
    failed = episode("threshold", 1, 0.0, end="environment")
    others = [record for record in EPISODES if (record.arm, record.seed) != ("threshold", 1)]
    paired = pair_episodes([*others, failed], ARMS)
    assert [record.seed for record in paired["no memory"]] == [0, 2, 3]
    assert [record.seed for record in paired["threshold"]] == [0, 2, 3]


@pytest.mark.parametrize("played", [[], [EPISODES[0], EPISODES[5]], EPISODES[:4]])
def test_without_a_common_episode_there_are_no_results(played: list[EpisodeRecord]) -> None:
    with pytest.raises(UsageError, match="played by every arm"):
        pair_episodes(played, ARMS)


def test_entries_are_counted_once_per_episode_and_the_most_harmful_come_first() -> None:
    paired = pair_episodes(EPISODES, ARMS)
    results = entry_results(paired["no memory"], paired["threshold"])
    assert [(one.entry, one.accepted, one.helps, one.hurts) for one in results] == [
        ("bad", 1, 0, 1),
        ("good", 2, 1, 0),
    ]
