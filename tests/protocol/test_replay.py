"""The live controller and the replay decide identically."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful import Controller, Policy, PolicyError, ScriptedModel
from heedful.decisions import policy_fields, read_policy
from heedful.protocol.ledger import Ledger
from heedful.protocol.replay import Replayer
from heedful.protocol.table import read_table
from tests.protocol.making import (
    Letters,
    World,
    policies,
    recorded,
    sources,
    spelled_alike,
    value_policies,
    worlds,
)

N = 3


NAMES = st.sampled_from([{}, {"one": "first", "two": "sources"}, {"one": "bias", "two": "baseline"}])


def renamed(policy: Policy, names: dict[str, str]) -> Policy:
    """The policy with other names for its sources."""

    def named(by_source: Mapping[str, Any] | None) -> Any:
        return by_source and {names.get(name, name): value for name, value in by_source.items()}

    calibrators = policy.calibrators
    return replace(
        policy,
        first=names.get(policy.first, policy.first),
        sources=tuple(names.get(name, name) for name in policy.sources),
        margins=named(policy.margins),
        calibrators=calibrators and replace(calibrators, sources=named(calibrators.sources)),
    )


@settings(max_examples=300)
@given(world=worlds(N), policy=st.one_of(policies(), policies(), value_policies()), names=NAMES)
def test_replaying_the_ledger_decides_exactly_as_the_live_controller(
    world: World, policy: Policy, names: dict[str, str]
) -> None:
    model, silent = world
    named = {names.get(name, name): source for name, source in sources(silent).items()}
    policy = renamed(policy, names)
    assert read_policy(json.loads(json.dumps(policy_fields(policy)))) == policy
    items = Letters(N).load(Path(), "fit")
    with TemporaryDirectory() as folder:
        ledger = recorded(Path(folder) / "ledger.jsonl", model, named, N)
        table = read_table(ledger, "fit", [item.id for item in items], [0])
    replayed = Replayer(table, spelled_alike).replay(policy)
    controller = Controller(model=model, policy=policy, sources=named, similarity=spelled_alike)
    for at, item in enumerate(items):
        live = controller.answer_sync(Letters(N).task(item))
        assert live.calls == replayed.calls[at]
        assert (live.route.choice == "consult") == replayed.consulted[at]
        won = -1 if live.chosen is None else policy.sources.index(live.candidates[live.chosen].attempt.source)
        assert won == replayed.chosen[at]
        assert (live.answer == "a") == replayed.right[at]


ASKING = ("agreement", "ptrue", "stated")


@given(world=worlds(N), policy=policies(), signal=st.sampled_from(ASKING))
def test_a_signal_that_asks_questions_is_replayed_with_its_calls(
    world: World, policy: Policy, signal: str
) -> None:
    model, silent = world
    policy = replace(policy, signal=signal, calibrators=None)
    items = Letters(N).load(Path(), "fit")
    with TemporaryDirectory() as folder:
        ledger = recorded(Path(folder) / "ledger.jsonl", model, sources(silent), N, signals=ASKING)
        written = Ledger(Path(folder) / "ledger.jsonl")
    assert written.passes == ledger.passes
    replayer = Replayer(read_table(ledger, "fit", [item.id for item in items], [0]))
    replayed = replayer.replay(policy)
    controller = Controller(model=model, policy=policy, sources=sources(silent))
    for at, item in enumerate(items):
        live = controller.answer_sync(Letters(N).task(item))
        assert live.calls == replayed.calls[at]
        assert (live.route.choice == "consult") == replayed.consulted[at]
        assert (live.answer == "a") == replayed.right[at]
    thresholds = [0.3, 0.7, float("inf")]
    swept = replayer.sweep(policy, thresholds)
    for at, threshold in enumerate(thresholds):
        done = replayer.replay(replace(policy, threshold=threshold))
        assert not policy.sources or swept.calls[at] == done.calls.sum()


@pytest.mark.parametrize("signal", ["agreement", "ptrue"])
def test_a_signal_that_was_not_recorded_is_not_replayed(tmp_path: Path, signal: str) -> None:
    model = ScriptedModel(script=lambda prompt: ("a", -0.5))
    ledger = recorded(tmp_path / "ledger.jsonl", model, sources(), N)
    replayer = Replayer(read_table(ledger, "fit", [f"fit{i}" for i in range(N)], [0]))
    with pytest.raises(PolicyError, match=f"{signal}.*cannot be replayed"):
        replayer.replay(Policy(signal=signal, threshold=0.5, sources=("one",)))
    assert replayer.replay(Policy(signal=signal, threshold=float("inf"), sources=("one",))).consulted.all()


@given(world=worlds(N), policy=policies())
def test_a_sweep_counts_what_replaying_each_threshold_counts(world: World, policy: Policy) -> None:
    model, silent = world
    with TemporaryDirectory() as folder:
        ledger = recorded(Path(folder) / "ledger.jsonl", model, sources(silent), N)
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
