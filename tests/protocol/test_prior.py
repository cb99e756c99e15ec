from dataclasses import replace as with_fields

import numpy as np
import pytest
from msgspec.structs import replace

from heedful import UsageError
from heedful.priors import read_prior
from heedful.protocol.fit import cross_validate, fitted_value
from heedful.protocol.fit_result import PRIOR
from heedful.protocol.prior import answer_kind, study_prior
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Column, Table, make_column
from tests.protocol.worlds import world

VALUE = FitSettings(families=("value",), signals=("mean",), calibrated=False, folds=2)


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (["7", "$3.50", "1,200", ""], "number"),
        (["A", "b", "C"], "choice"),
        (["four weeks", "7", "Velkirk"], "text"),
        ([], "text"),
    ],
)
def test_the_kind_of_answers_is_what_most_of_them_are(answers: list[str], kind: str) -> None:
    assert answer_kind(answers) == kind


def numbers(n: int) -> Table:
    """A world whose answers are numbers."""
    table = world(np.random.default_rng(5), n, help_rate=0.4, hurt_rate=0.1, telling=0.3)

    def counted(column: Column) -> Column:
        passes = [with_fields(record, answer=str(len(record.answer))) for record in column.passes]
        return make_column(passes, column.right.tolist())

    return with_fields(table, columns={name: counted(column) for name, column in table.columns.items()})


def test_a_study_uses_the_prior_that_never_saw_its_benchmark() -> None:
    table = numbers(40)
    prior = study_prior(table, ["bank"], VALUE, "svamp")
    assert prior is not None
    assert prior.value is not None
    assert prior.value.trees.origin == "number-without-svamp"
    assert prior.value.margin == read_prior("number-without-svamp").card.margins["number"]
    named = study_prior(table, ["bank"], replace(VALUE, prior="number"), "svamp")
    assert named is not None
    assert named.value is not None
    assert named.value.trees.origin == "number"
    assert study_prior(table, ["bank"], replace(VALUE, prior="none"), "svamp") is None
    assert study_prior(table, [], VALUE, "") is None


def test_own_trees_use_the_estimates_of_a_prior_and_both_are_judged() -> None:
    table = numbers(80)
    prior = study_prior(table, ["bank"], VALUE, "")
    assert prior is not None
    assert prior.value is not None
    own = fitted_value(table, ["bank"], VALUE, prior).policy
    assert own.value is not None
    assert own.value.trees.prior == prior.value.trees
    families = {score.kind.family for score in cross_validate(table, ["bank"], VALUE, prior)}
    assert {"value", PRIOR} <= families


def test_tokens_may_be_priced_instead_of_calls() -> None:
    table = numbers(80)
    bank = table.column("bank")
    dear = with_fields(bank, tokens=np.full(len(table), 100_000))
    costly = with_fields(table, columns={**table.columns, "bank": dear})
    by_tokens = replace(VALUE, unit="tokens")
    cheap, expensive = (study_prior(rows, ["bank"], by_tokens, "") for rows in (table, costly))
    assert cheap is not None
    assert expensive is not None
    assert cheap.value is not None
    assert expensive.value is not None
    assert expensive.value.costs == (100_000.0,)
    assert cheap.value.costs[0] < 1_000
    best = cross_validate(costly, ["bank"], by_tokens)[0]
    assert best.calls == 1, "no gain is worth a hundred thousand tokens"


def test_a_prior_that_needs_logprobs_is_refused_without_them() -> None:
    table = numbers(40)

    def silent(column: Column) -> Column:
        return make_column([with_fields(p, signals={}) for p in column.passes], column.right.tolist())

    plain = with_fields(table, columns={name: silent(column) for name, column in table.columns.items()})
    with pytest.raises(UsageError, match="needs log-probs, which the passes lack"):
        study_prior(plain, ["bank"], replace(VALUE, prior="number"), "")
    found = study_prior(plain, ["bank"], VALUE, "")
    assert found is not None
    assert found.value is not None
    assert found.value.trees.origin == "number-no-logprobs"
