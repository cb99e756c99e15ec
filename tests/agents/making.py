"""Players and sources for tests with the toy world."""

from collections.abc import Callable, Mapping, Sequence

from heedful.agents.agent_arms import MEMORY, threshold_policy
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.play import Arm, Player, StepView
from heedful.agents.step_task import ActingSettings
from heedful.agents.world_worker import WorldWorker
from heedful.control import run_sync
from heedful.memory.entries import new_entry
from heedful.ports import Environment, Model, Source
from heedful.sources import MemorySource
from heedful.types import Budget, Entry, Policy
from tests.agents.toy_world import BoxWorld, scripted
from tests.making import FixedBank

HEADING = "Notes from similar situations:"
BLUE_HINT = new_entry("Open a box.", kind="hint", response="What worked: open blue box.")
UNSURE = threshold_policy(-0.5, 0.0, Budget(passes=2))


def sources(*entries: Entry) -> Callable[[str], Mapping[str, Source]]:
    bank = FixedBank(entries)
    return lambda kind: {MEMORY: MemorySource(bank=bank, placement="after", heading=HEADING)}


def played(
    policy: Policy = UNSURE,
    *,
    seed: int = 1,
    model: Model | None = None,
    make: Callable[[], Environment] = BoxWorld,
    entries: Sequence[Entry] = (BLUE_HINT,),
    settings: ActingSettings = ActingSettings(steps=12),
    script: Sequence[str] = (),
    watch: Callable[[StepView], object] = lambda step: None,
    patience: float = 30.0,
) -> EpisodeRecord:
    """One episode in the toy world."""
    player = Player(
        model=model or scripted(), settings=settings, sources=sources(*entries), watch=watch, patience=None
    )
    worker = WorldWorker(make, patience)
    return run_sync(player.play(worker, "test", seed, Arm(name="arm", policy=policy), script))
