from pathlib import Path

import pytest

from heedful import UsageError, arms
from heedful.priors import AnswerKind, prior_for, prior_names, read_prior
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import read_lock
from heedful.protocol.replay import Replayer
from heedful.protocol.table import read_table
from heedful.stages.value import compares_meanings
from heedful.stages.value_features import ANSWER_FEATURES, GAIN_FEATURES

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("name", prior_names())
def test_a_shipped_prior_speaks_the_features_of_this_version(name: str) -> None:
    prior = read_prior(name)
    assert (prior.card.name, prior.trees.origin) == (name, name)
    assert (prior.trees.answer.features, prior.trees.gain.features) == (ANSWER_FEATURES, GAIN_FEATURES)
    assert not prior.trees.by_source, "a prior knows no source of another study"
    assert not compares_meanings(prior.trees)
    assert prior.card.held_out
    for gain in prior.card.held_out:
        assert gain.accuracy > gain.base, "a prior that does not transfer is not shipped"


def test_a_prior_for_a_benchmark_never_saw_it() -> None:
    for benchmark in ("svamp", "asdiv", "multiarith"):
        prior = prior_for("number", benchmark=benchmark)
        assert prior is not None
        assert benchmark not in prior.card.fitted_on
    anything = prior_for("number")
    assert anything is not None
    assert anything.card.fitted_on == ("svamp", "asdiv", "multiarith")
    assert prior_for("choice") == anything
    assert prior_for("text", logprobs=False) is None, "nothing was shown for texts without log-probs"
    plain = prior_for("number", logprobs=False)
    assert plain is not None
    assert not plain.card.logprobs
    assert prior_for("choice", logprobs=False) == plain
    assert prior_for("number", benchmark="svamp", logprobs=False) is None


def test_an_unknown_prior_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(UsageError, match="choose from number"):
        read_prior("wisdom")


@pytest.mark.parametrize(
    ("name", "study", "kind", "banks"),
    [
        ("number-without-multiarith", "multiarith", "number", ["exemplar", "rule"]),
        ("number", "arc_easy", "choice", ["exemplar", "fact"]),
    ],
)
def test_the_figures_of_a_card_come_from_the_published_ledger(
    name: str, study: str, kind: AnswerKind, banks: list[str]
) -> None:
    prior = read_prior(name)
    (gain,) = (gain for gain in prior.card.held_out if gain.study == study)
    folder = RESULTS / study
    lock = read_lock(folder / "lock.json")
    replayer = Replayer(read_table(Ledger(folder / "ledger.jsonl"), "fit", lock.splits["fit"], lock.seeds))
    done = replayer.replay(
        arms.value(prior.trees, banks, cost=prior.card.cost, margin=prior.card.margins[kind])
    )
    base = replayer.base_right
    assert (gain.rows, gain.base, gain.accuracy) == (len(base), base.mean(), done.right.mean())
    assert (gain.helps, gain.hurts) == ((done.right & ~base).sum(), (base & ~done.right).sum())
    assert gain.calls == done.calls.mean()
