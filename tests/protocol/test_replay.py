"""The live controller and the replay decide identically."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings

from heedful import Controller
from heedful.protocol.replay import Replayer
from heedful.protocol.table import read_table
from tests.protocol.making import Letters, policies, recorded, sources, worlds

N = 3


@settings(max_examples=300)
@given(world=worlds(N), policy=policies())
def test_replaying_the_ledger_decides_exactly_as_the_live_controller(world, policy):
    model, silent = world
    named = sources(silent)
    kept = {name: named[name] for name in ("none", "one", "two", "retry")}
    items = Letters(N).load(Path(), "fit")
    with TemporaryDirectory() as folder:
        ledger = recorded(Path(folder) / "ledger.jsonl", model, kept, N)
        table = read_table(ledger, "fit", [item.id for item in items], [0])
    replayed = Replayer(table).replay(policy)
    controller = Controller(model=model, policy=policy, sources=kept)
    for at, item in enumerate(items):
        live = controller.answer_sync(Letters(N).task(item))
        assert live.calls == replayed.calls[at]
        assert (live.route.choice == "consult") == replayed.consulted[at]
        won = -1 if live.chosen is None else policy.sources.index(live.candidates[live.chosen].attempt.source)
        assert won == replayed.chosen[at]
        assert (live.answer == "a") == replayed.right[at]


@given(world=worlds(N), policy=policies())
def test_a_sweep_counts_what_replaying_each_threshold_counts(world, policy):
    model, silent = world
    kept = {
        name: source for name, source in sources(silent).items() if name in ("none", "one", "two", "retry")
    }
    with TemporaryDirectory() as folder:
        ledger = recorded(Path(folder) / "ledger.jsonl", model, kept, N)
        table = read_table(ledger, "fit", [f"fit{i}" for i in range(N)], [0])
    replayer = Replayer(table)
    policy = replace(policy, sources=policy.sources or ("one",), budget=replace(policy.budget, passes=None))
    if policy.margins is not None or policy.calibrators is not None:
        policy = replace(policy, margins=None, calibrators=None, combine="cascade")
    thresholds = np.array([-2.0, -0.5, -0.25, 0.0, np.inf])
    swept = replayer.sweep(policy, thresholds)
    for at, threshold in enumerate(thresholds):
        done = replayer.replay(replace(policy, threshold=float(threshold)))
        assert swept.right[at] == done.right.sum()
        assert swept.calls[at] == done.calls.sum()
        assert swept.helps[at] == (done.right & ~replayer.base_right).sum()
        assert swept.hurts[at] == (~done.right & replayer.base_right).sum()
