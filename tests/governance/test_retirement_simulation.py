"""How often harmless entries and groups go, and how soon harmful ones do, in seeded simulations."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful import new_entry
from heedful.experiments.study_evidence import table_evidence
from heedful.governance.bounds import EVEN, TILTED, StakeMixture, first_condemned
from heedful.governance.evidence import recall_outcomes, standings
from heedful.governance.groups import group_standings
from heedful.governance.judge import judge, judge_entries
from heedful.governance.retire import review
from heedful.governance.terms import RetirementTerms
from heedful.protocol.ledger import Ledger
from heedful.protocol.table import read_table
from heedful.types import Evidence

DELTA = 0.05
MULTIARITH = Path(__file__).parents[2] / "results" / "multiarith" / "ledger.jsonl"
Floats = NDArray[np.float64]


def most(runs: int, rate: float = DELTA) -> float:
    """The rate plus three standard errors of a simulation."""
    return rate + 3 * float(np.sqrt(rate * (1 - rate) / runs))


def drawn(helps: float, hurts: float, *shape: int, seed: int = 1) -> Floats:
    shares = [hurts, 1 - helps - hurts, helps]
    return np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], p=shares, size=shape)


def after(values: Floats, delta: float = DELTA, mixture: StakeMixture = TILTED) -> Floats:
    """For each run, the tasks until `betting`, applied after each task, condemns; infinite: never."""
    gains = np.log1p(-np.array(mixture.stakes)[:, None, None] * np.minimum(values, 1 - 1e-12))
    wealth = mixture.weights @ np.exp(np.cumsum(gains, axis=2)).reshape(len(mixture.stakes), -1)
    rich = wealth.reshape(values.shape) >= 1 / delta
    return np.where(rich.any(axis=1), rich.argmax(axis=1) + 1.0, np.inf)


def test_the_simulated_wealth_is_that_of_the_rule() -> None:
    values = drawn(0.1, 0.3, 20, 100)
    by_rule = [first_condemned(run, "betting", DELTA) or np.inf for run in values]
    assert after(values).tolist() == by_rule


@pytest.mark.parametrize("mixture", [TILTED, EVEN], ids=["entries", "groups"])
@pytest.mark.parametrize("shares", [(0.4, 0.4), (0.05, 0.05), (0.12, 0.1)])
def test_a_harmless_entry_or_group_that_is_watched_goes_in_at_most_one_run_of_twenty(
    shares: tuple[float, float], mixture: StakeMixture
) -> None:
    runs = 1000
    assert np.isfinite(after(drawn(*shares, runs, 400), mixture=mixture)).mean() <= most(runs)


def test_full_stakes_condemn_an_entry_that_never_helps_much_sooner() -> None:
    values = drawn(0.0, 0.1, 2000, 400)
    tilted, even = after(values), after(values, mixture=EVEN)
    assert np.median(tilted) == pytest.approx(47, abs=2)
    assert np.median(even) == pytest.approx(67, abs=3)
    assert (tilted <= 40).mean() == pytest.approx(0.37, abs=0.04)
    assert (even <= 40).mean() == pytest.approx(0.10, abs=0.03)


def test_one_look_at_a_harmless_bank_retires_an_entry_in_at_most_one_study_of_twenty() -> None:
    studies = 400
    losses = [
        any(one.condemned for one in judge_entries(study.tolist(), "sign", DELTA))
        for study in drawn(0.15, 0.15, studies, 20, 60)
    ]
    assert np.mean(losses) <= most(studies)


def test_few_of_the_entries_that_one_look_retires_are_harmless_and_most_harmful_ones_are_found() -> None:
    studies = 200
    harmless, harmful = drawn(0.15, 0.15, studies, 15, 60), drawn(0.0, 0.2, studies, 5, 60, seed=2)
    false, found = [], []
    for good, bad in zip(harmless, harmful, strict=True):
        gone = [one.condemned for one in judge_entries([*good.tolist(), *bad.tolist()], "sign", DELTA)]
        false.append(sum(gone[:15]) / max(1, sum(gone)))
        found.append(sum(gone[15:]) / 5)
    assert np.mean(false) <= DELTA
    assert np.mean(found) > 0.9


def test_a_bank_of_harmless_groups_loses_one_in_at_most_one_study_of_forty() -> None:
    studies = 200
    entries = [
        new_entry(f"e{n}", kind="rule", id=f"e{n}", source=f"s{n % 3}", tags=[f"t{n % 4}"]) for n in range(12)
    ]
    condemned = 0
    for study in drawn(0.2, 0.2, studies, 12, 15):
        evidence = [
            Evidence(entry=entry.id, version=entry.digest, task=f"{entry.id}-{n}", utility=value)
            for entry, values in zip(entries, study.tolist(), strict=True)
            for n, value in enumerate(values)
        ]
        groups = group_standings("b", entries, evidence)
        condemned += bool(review([], RetirementTerms(rule="sign"), groups).groups)
    assert condemned / studies <= most(studies, DELTA / 2)


def test_the_published_exemplars_of_multiarith_are_condemned_as_a_bank_before_any_single_one() -> None:
    ledger = Ledger(MULTIARITH)
    tasks = list(dict.fromkeys(row.task for row in ledger.passes.values() if row.side == "fit"))
    evidence = table_evidence(read_table(ledger, "fit", tasks, [0]), "exemplar")
    outcomes = {one.task: next(iter(one.recalled.values())) for one in recall_outcomes(evidence)}
    rng = np.random.default_rng(0)
    bank = after(np.array([rng.permutation(list(outcomes.values())) for _ in range(400)]), DELTA, EVEN)
    assert np.median(bank) == pytest.approx(80, abs=6)
    seen: dict[str, list[tuple[int, float]]] = {}
    soonest = []
    for _ in range(40):
        place = {
            task: number for number, task in enumerate(rng.permutation(list(outcomes)).tolist(), start=1)
        }
        seen = {}
        for one in evidence:
            seen.setdefault(one.entry, []).append((place[one.task], one.utility))
        ends = [first_entry_end(sorted(rows)) for rows in seen.values()]
        soonest.append(min(ends))
    assert np.median(soonest) > np.median(bank)


def first_entry_end(rows: list[tuple[int, float]]) -> float:
    """The number of the bank's tasks after which this entry is condemned."""
    count = first_condemned([value for _, value in rows], "betting", DELTA)
    return rows[count - 1][0] if count else np.inf


@pytest.mark.parametrize("together", [1.0, 0.8])
def test_an_innocent_companion_goes_only_if_shared_outcomes_count_in_full(together: float) -> None:
    innocent, guilty = (new_entry(name, kind="rule", id=name) for name in ("innocent", "guilty"))
    rng = np.random.default_rng(5)
    gone = {"shared": 0, "own": 0, "guilty": 0}
    runs = 60
    for run in range(runs):
        values, noise = drawn(0.02, 0.3, 60, seed=run), drawn(0.02, 0.02, 60, seed=1000 + run)
        both = rng.random(60) < together
        evidence = [
            Evidence(
                entry=one.id, version=one.digest, task=f"{n}", utility=values[n] if both[n] else noise[n]
            )
            for n in range(60)
            for one in ((innocent, guilty) if both[n] else (innocent,))
        ]
        credit = {
            (f"{n}", one): (one == "guilty") != (rng.random() < 0.05)
            for n in range(60)
            for one in ("innocent", "guilty")
        }
        for kind, own in (("shared", False), ("own", True)):
            found = review(
                standings([innocent, guilty], evidence, credit=credit if own else {}),
                RetirementTerms(max_share=1, own_outcomes=own),
            )
            names = [one.standing.entry.id for one in found.going]
            gone[kind] += "innocent" in names
            gone["guilty"] += own and "guilty" in names
    assert gone["shared"] / runs > 0.34
    assert gone["own"] / runs <= DELTA
    assert gone["guilty"] / runs > 0.7


def test_repeated_questions_break_a_rule_unless_their_cluster_counts_once() -> None:
    entry = new_entry("harmless", kind="rule", id="harmless")
    runs = 200
    by_task = by_cluster = 0
    clusters = {f"{n}-{copy}": f"{n}" for n in range(40) for copy in range(5)}
    for values in drawn(0.25, 0.25, runs, 40):
        evidence = [
            Evidence(entry=entry.id, version=entry.digest, task=f"{n}-{copy}", utility=value)
            for n, value in enumerate(values.tolist())
            for copy in range(5)
        ]
        every, once = (standings([entry], evidence, cluster_of=known)[0] for known in ({}, clusters))
        by_task += judge(every.utilities, "sign", DELTA).condemned
        by_cluster += judge(once.utilities, "sign", DELTA).condemned
    assert by_task / runs > 0.15
    assert by_cluster / runs <= most(runs)


def test_the_mean_of_repeated_observations_breaks_the_sign_test_and_the_first_does_not() -> None:
    """Five tasks of six are hurt in 60% of decodes, the sixth is always helped: harmless on average."""
    runs = 300
    rng = np.random.default_rng(7)
    helped = rng.random((runs, 60, 1)) < 1 / 6
    seen = np.where(helped, 1.0, np.where(rng.random((runs, 60, 20)) < 0.6, -1.0, 1.0))
    averaged = [judge(run, "sign", DELTA).condemned for run in seen.mean(axis=2).tolist()]
    first = [judge(run, "sign", DELTA).condemned for run in seen[:, :, 0].tolist()]
    assert np.mean(averaged) > 0.7
    assert np.mean(first) <= most(runs)


def test_probes_find_suspects_that_are_seldom_recalled_and_leave_harmless_ones() -> None:
    runs = 2000
    for helps, hurts, low, high in ((0.0, 0.1, 0.4, 1.0), (0.05, 0.05, 0.0, DELTA / 2)):
        used, probed = drawn(helps, hurts, runs, 20, seed=8), drawn(helps, hurts, runs, 40, seed=9)
        suspect = used.sum(axis=1) < 0
        ends = after(np.hstack([used, probed]), DELTA / 2)
        assert low <= (suspect & np.isfinite(ends)).mean() <= high
