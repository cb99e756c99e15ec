"""The demo's study for real, with the embedded model; and live against replay on the ledger it recorded."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

from heedful import Controller, EmbeddedModel, Policy, arms
from heedful.decisions import read_policy
from heedful.demo.run import DemoResult, run_demo
from heedful.demo.scenario import SOURCE
from heedful.protocol.calibrators import fit_calibrators
from heedful.protocol.ledger import Ledger
from heedful.protocol.workspace import Workspace, read_json
from heedful.report.write import write_report
from heedful.stages.calibrate import CALIBRATED
from heedful.types import Decode, Prompt, Traits


@dataclass
class Remembering:
    """Decodes a prompt once, so that live and replay look at the same answers of a real model."""

    inner: EmbeddedModel
    decodes: dict[str, Decode] = field(default_factory=dict)

    @property
    def traits(self) -> Traits:
        return self.inner.traits

    async def decode(self, prompt: Prompt) -> Decode:
        if prompt.digest not in self.decodes:
            self.decodes[prompt.digest] = await self.inner.decode(prompt)
        return self.decodes[prompt.digest]

    async def aclose(self) -> None:
        """The fixture of the model closes it."""


@pytest.fixture(scope="module")
def ran(
    engine: EmbeddedModel, minilm: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Remembering, DemoResult]:
    folder = tmp_path_factory.mktemp("demo") / "study"
    model = Remembering(engine)
    return folder, model, asyncio.run(run_demo(folder, model, 20, lambda side, told: None))


def test_the_demo_is_a_locked_study_whose_calls_are_its_passes(
    ran: tuple[Path, Remembering, DemoResult],
) -> None:
    folder, _, shown = ran
    space = Workspace(Path(folder))
    rows = Ledger(space.ledger).passes.values()
    assert len([row for row in rows if row.side == "fit"]) == 2 * 30
    assert len([row for row in rows if row.side == "test"]) == 2 * 20
    assert shown.policy == read_policy(read_json(space.lock, "")["policy"])
    found = write_report(space).summary
    assert found["model_calls"] == sum(row.record.calls for row in rows)
    for arm, name in (("never", "baseline"), ("heedful", "heedful")):
        score, reported = shown.score(arm), found["arms"][name]
        assert (score.n, score.right / score.n, score.helps, score.hurts) == (
            reported["n"],
            reported["accuracy"],
            reported["helps"],
            reported["hurts"],
        )


@pytest.mark.parametrize(
    "policy",
    [
        arms.never(),
        arms.always(SOURCE),
        arms.gate(SOURCE, -0.4),
        arms.gate(SOURCE, -0.5, signal="min"),
        arms.choose(SOURCE, -0.3, 0.0),
        arms.choose(SOURCE, -0.2, 0.1, signal="median"),
        arms.choose(SOURCE, float("inf"), -0.2, signal="answer_mean"),
        Policy(first=SOURCE, signal="margin", threshold=4.0, sources=("none",)),
        *(
            Policy(
                threshold=-0.2, sources=(SOURCE, "none"), combine=combine, margins={SOURCE: -0.1, "none": 0.0}
            )
            for combine in ("cascade", "dual", "agree")
        ),
        "calibrated",
    ],
)
def test_live_and_replay_agree_on_a_real_ledger(
    ran: tuple[Path, Remembering, DemoResult], policy: Policy | Literal["calibrated"]
) -> None:
    _, model, shown = ran
    if policy == "calibrated":
        calibrators = fit_calibrators(shown.replayer, "none", [SOURCE])
        policy = replace(arms.choose(SOURCE, 0.6, 0.1), signal=CALIBRATED, calibrators=calibrators)
    replayed = shown.replayer.replay(policy)
    memory = {SOURCE: shown.setup.sources("test", 0)[SOURCE]}
    controller = Controller(model=model, policy=policy, sources=memory)
    for place, item in enumerate(shown.questions):
        live = controller.answer_sync(shown.setup.benchmark.task(item))
        chosen = replayed.chosen[place]
        column = shown.replayer.first(policy.first if chosen < 0 else policy.sources[chosen])
        assert live.answer == column.passes[place].answer
        assert live.calls == replayed.calls[place]
        assert (live.route.choice == "consult") == replayed.consulted[place]
        assert shown.setup.benchmark.grade(live.answer, item) == replayed.right[place]
