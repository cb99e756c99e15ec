"""Priors: estimators of value that were fitted on the published ledgers."""

from heedful.priors.shipped import (
    AnswerKind,
    HeldOutGain,
    Prior,
    PriorCard,
    prior_for,
    prior_names,
    read_prior,
)

__all__ = ["AnswerKind", "HeldOutGain", "Prior", "PriorCard", "prior_for", "prior_names", "read_prior"]
