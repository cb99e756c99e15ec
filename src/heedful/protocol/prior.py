"""The shipped prior that a study may use: estimators that never saw its benchmark."""

from collections.abc import Sequence

from heedful.errors import UsageError
from heedful.priors import AnswerKind, Prior, prior_for, read_prior
from heedful.protocol.study import AUTO, NONE, FitSettings
from heedful.protocol.table import Table
from heedful.protocol.value_fit import mean_cost
from heedful.stages.answer import is_amount
from heedful.types import Policy, ValueRule

MOST = 0.8
"""The share of answers of one kind from which a study counts as being of that kind."""


def study_prior(table: Table, banks: Sequence[str], settings: FitSettings, benchmark: str) -> Policy | None:
    """The prior as a value policy over all banks, with its cautious margin; None if the study has none.

    It depends on the passes, not on their grades.
    """
    kind = answer_kind([record.answer for record in table.column("none").passes])
    prior = _chosen(settings.prior, kind, table, benchmark)
    if prior is None or not banks:
        return None
    rule = ValueRule(
        trees=prior.trees,
        costs=tuple(mean_cost(table.column(bank), settings.unit) for bank in banks),
        unit=settings.unit,
        cost=settings.cost,
        margin=prior.card.margins.get(kind, max(prior.card.margins.values())),
    )
    return Policy(sources=tuple(banks), combine="value", value=rule)


def _chosen(name: str, kind: AnswerKind, table: Table, benchmark: str) -> Prior | None:
    if name == NONE:
        return None
    logprobs = any("mean" in record.signals for record in table.column("none").passes)
    if name == AUTO:
        return prior_for(kind, benchmark=benchmark, logprobs=logprobs)
    prior = read_prior(name)
    if prior.card.logprobs and not logprobs:
        raise UsageError(
            f"the prior {name} needs log-probs, which the passes lack: set [fit] prior to auto, none or "
            "number-no-logprobs"
        )
    return prior


def answer_kind(answers: Sequence[str]) -> AnswerKind:
    """What most answers are: numbers, letters of choices, or texts."""
    given = [answer for answer in answers if answer]
    if sum(map(is_amount, given)) > MOST * len(given):
        return "number"
    letters = sum(len(answer) == 1 and answer.isalpha() for answer in given)
    return "choice" if letters > MOST * len(given) else "text"
