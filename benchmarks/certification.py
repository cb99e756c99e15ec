"""Which procedure certifies a harm limit best? Simulated studies from the published fit ledgers.

The rows of a ledger's fit side are parted into rows that choose and rows that certify. Policies are tuned
on the choosing rows. Then many studies draw rows with replacement from the same parts, and each procedure
certifies on the drawn rows. The parts stand for the population: the true harm and gain of a policy are
those on all rows that may certify it, none of which it was tuned on. The prior is the shipped one that was
fitted without the benchmark; all rows may certify it. No model calls, no test rows:

    python benchmarks/certification.py [--parts 8] [--studies 400] [--limit 0.02] [--json]

It takes half an hour, nearly all of it for tuning threshold policies on SVAMP.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr

from heedful.priors import prior_for
from heedful.protocol.ladders import margin_ladder, tuned_path
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import read_lock
from heedful.protocol.policy_grid import PERCENTILES
from heedful.protocol.replay import Replayer
from heedful.protocol.study import THRESHOLD_FAMILIES, FitSettings
from heedful.protocol.table import Bools, Floats, Ints, Table, read_table
from heedful.protocol.value_fit import fit_value
from heedful.types import Policy, ValueRule, ValueTrees

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = ("svamp", "asdiv", "multiarith")
BANKS = ("exemplar", "rule", "worked")
SETTINGS = FitSettings(families=THRESHOLD_FAMILIES, harm_limit=0.02)


@dataclass(frozen=True)
class Ladder:
    """Policies in their order of testing, on every row of a fit side."""

    hurt: Bools
    """By policy and row."""
    gain: Floats
    """Change in accuracy."""
    objective: Floats
    rows: Ints
    """Rows that may test it."""
    confidence: Floats | None = None
    """If set, the ladder is one policy that consults always, and percentiles of this cut it into steps."""

    def steps(self, sample: Ints) -> "Ladder":
        """With the thresholds that a study of these rows would use."""
        if self.confidence is None:
            return self
        below = self.confidence < np.percentile(self.confidence[sample], PERCENTILES)[:, None]
        below[-1] = True
        return Ladder(self.hurt & below, self.gain * below, self.objective * below, self.rows)


class Draw(NamedTuple):
    gain: float
    used: bool
    broken: bool


def ladder(replayer: Replayer, policies: Sequence[Policy], rows: Ints) -> Ladder:
    done = [replayer.replay(policy) for policy in policies]
    right = np.array([one.right for one in done], dtype=bool).reshape(len(done), len(replayer.table))
    calls = np.array([one.calls for one in done], dtype=int).reshape(right.shape)
    gain = right.astype(float) - replayer.base_right
    return Ladder(replayer.base_right & ~right, gain, gain - SETTINGS.cost * (calls - 1), rows)


def percentile_ladder(replayer: Replayer, policy: Policy) -> Ladder:
    always = ladder(replayer, [replace(policy, threshold=inf)], np.arange(len(replayer.table)))
    return replace(always, confidence=replayer.first_confidence(policy))


def run_study(
    ladders: Sequence[Ladder], parts: Sequence[Ints], limit: float, rng: np.random.Generator
) -> Draw:
    """One study: draw its rows, certify each ladder at its share of the error, take the best policy.

    Of each ladder the boldest certified policy is taken, and the one that is best on the certifying rows.
    """
    drawn = [rng.choice(part, len(part)) for part in parts]
    every, certifying = np.concatenate(drawn), drawn[-1]
    best, chosen = 0.0, None
    for whole in ladders:
        sample = every if len(whole.rows) == len(every) else certifying
        steps = whole.steps(sample)
        p = bdtr(steps.hurt[:, sample].sum(axis=1), len(sample), limit)
        passed = int(np.argmax(np.append(p > 0.05 / len(ladders), True)))
        score = float(steps.objective[passed - 1][certifying].mean()) if passed else 0.0
        if score > best:
            best, chosen = score, (steps, passed - 1)
    if chosen is None:
        return Draw(0.0, False, False)
    steps, at = chosen
    harm = float(steps.hurt[at][steps.rows].mean())
    return Draw(float(steps.gain[at][steps.rows].mean()), True, harm > limit)


def fit_side(name: str) -> Table:
    lock = read_lock(RESULTS / name / "lock.json")
    return read_table(Ledger(RESULTS / name / "ledger.jsonl"), "fit", lock.splits["fit"], lock.seeds)


def banks_of(table: Table) -> list[str]:
    return [name for name in BANKS if name in table.columns]


def safest_path(rows: Table, banks: Sequence[str]) -> list[Policy]:
    """Threshold policies, safest first by their expected harm on held-out folds of the choosing rows."""
    least = float(rows.column("none").right.mean()) - SETTINGS.cost
    search = tuned_path(rows, rows, banks, SETTINGS, least)
    return [step.policy for step in search.ladder.steps]


def trees_of(name: str) -> ValueTrees:
    """The shipped prior that never saw the benchmark."""
    prior = prior_for("number", benchmark=name)
    assert prior is not None
    return prior.trees


def fixed_ladders(replayer: Replayer, name: str) -> dict[str, list[Ladder]]:
    """Ladders that exist before any row of this study: a prior, and kinds of threshold policies."""
    banks, every = tuple(banks_of(replayer.table)), np.arange(len(replayer.table))
    rule = ValueRule(trees=trees_of(name), costs=(1.0,) * len(banks), cost=SETTINGS.cost)
    prior = Policy(sources=banks, combine="value", value=rule)
    agree = Policy(sources=banks, combine="agree")
    choose = [Policy(sources=(bank,), margins={bank: 0.0}) for bank in banks]
    return {
        "prior": [ladder(replayer, margin_ladder(prior), every)],
        "agree": [percentile_ladder(replayer, agree)],
        "choose": [percentile_ladder(replayer, one) for one in choose],
    }


def tuned_ladders(replayer: Replayer, name: str, parts: Sequence[Ints], seed: int) -> dict[str, list[Ladder]]:
    """Ladders whose policies come from the choosing rows."""
    choosing, certifying = parts
    rows, banks = replayer.table.rows(choosing), banks_of(replayer.table)
    start, learner = Policy(sources=tuple(banks)), Replayer(rows)
    own = fit_value(learner, start, SETTINGS.cost, seed)
    both = fit_value(learner, start, SETTINGS.cost, seed, prior=trees_of(name))
    return {
        "thresholds": [ladder(replayer, safest_path(rows, banks), certifying)],
        "own": [ladder(replayer, margin_ladder(own), certifying)],
        "own+prior": [ladder(replayer, margin_ladder(both), certifying)],
    }


PROCEDURES = {
    "A: tuned thresholds, 2/5 and 3/5": ("thresholds",),
    "B: own estimator, 2/5 and 3/5": ("own",),
    "C: agreement of all banks, all rows": ("agree",),
    "D: choose, a ladder per bank, all rows": ("choose",),
    "E: prior, all rows": ("prior",),
    "F: own estimator with the prior as a feature, 2/5 and 3/5": ("own+prior",),
    "A and B": ("thresholds", "own"),
    "A and C": ("thresholds", "agree"),
    "B and C": ("own", "agree"),
    "A and E": ("thresholds", "prior"),
    "B and E": ("own", "prior"),
    "E and F": ("prior", "own+prior"),
    "B, C and E": ("own", "agree", "prior"),
}


def parted(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Two fifths of the rows choose, the others certify, as in a study."""
    order = rng.permutation(n)
    return np.sort(order[: n * 2 // 5]), np.sort(order[n * 2 // 5 :])


def simulate(name: str, given: argparse.Namespace) -> dict[str, dict[str, float]]:
    replayer = Replayer(fit_side(name))
    n = len(replayer.table)
    fixed = fixed_ladders(replayer, name)
    draws: dict[str, list[Draw]] = {procedure: [] for procedure in PROCEDURES}
    for part in range(given.parts):
        rng = np.random.default_rng([given.seed, part])
        parts = parted(n, rng)
        known = {**fixed, **tuned_ladders(replayer, name, parts, part)}
        for procedure, names in PROCEDURES.items():
            ladders = [steps for kind in names for steps in known[kind] if len(steps.hurt)]
            draws[procedure] += [run_study(ladders, parts, given.limit, rng) for _ in range(given.studies)]
    return {
        procedure: {
            "gain": float(np.mean([one.gain for one in done])),
            "uses_memory": float(np.mean([one.used for one in done])),
            "broken": float(np.mean([one.broken for one in done])),
        }
        for procedure, done in draws.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--limit", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=STUDIES, action="append")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {name: simulate(name, given) for name in given.only or STUDIES}
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(f"| procedure | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for procedure in PROCEDURES:
        cells = [
            f"{100 * one['gain']:+.1f}, {one['uses_memory']:.0%}, {one['broken']:.1%}"
            for one in (studies[procedure] for studies in found.values())
        ]
        print(f"| {procedure} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
