"""Is it memory or compute? The same value procedure over passes with memory and over passes without it.

A study that samples its first prompt on both sides can ask the model again instead of asking memory. Three
value policies are fitted on the same rows: over the samples, over the banks, and over both. Each asks exactly
as many sources as there are samples, so that all of them make the same number of calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heedful.protocol.fit import fitted_value
from heedful.protocol.fit_result import FamilyFit
from heedful.protocol.prior import study_prior
from heedful.protocol.study import VALUE, FitSettings, SourceSettings
from heedful.protocol.table import Table
from heedful.types import Budget

COMPUTE, MEMORY, BOTH = "compute", "memory", "both"
DIFFERENCES = ((MEMORY, COMPUTE), (BOTH, COMPUTE), (BOTH, MEMORY))
"""The comparisons of a report: each the first minus the second."""
ALWAYS_PAYS = -1.0
"""A cost at which every expected gain pays: a policy stops only at its budget."""


def samples_of(sources: Mapping[str, SourceSettings]) -> tuple[str, ...]:
    """The memory-free samples that a study records on both sides."""
    return tuple(
        name
        for name, source in sources.items()
        if source.kind == "retry" and source.temperature and set(source.sides) == {"fit", "test"}
    )


def fit_matched(
    table: Table, banks: Sequence[str], samples: Sequence[str], settings: FitSettings, benchmark: str
) -> dict[str, FamilyFit]:
    """The three value policies; none if the study has no samples, no banks, or no value policies."""
    samples = [name for name in samples if name in table.columns]
    banks = [name for name in banks if name not in samples]
    if not samples or not banks or VALUE not in settings.families:
        return {}
    kinds = {COMPUTE: samples, MEMORY: banks, BOTH: [*banks, *samples]}
    return {
        name: _fitted(table, sources, len(samples), settings, benchmark) for name, sources in kinds.items()
    }


def _fitted(
    table: Table, sources: Sequence[str], passes: int, settings: FitSettings, benchmark: str
) -> FamilyFit:
    """A value policy that asks exactly this many of the sources, the most promising first."""
    prior = study_prior(table, sources, settings, benchmark)
    tuned = fitted_value(table, sources, settings, prior, Budget(passes=passes))
    rule = tuned.policy.value
    assert rule is not None, "a value policy has a rule"
    return FamilyFit(policy=replace(tuned.policy, value=replace(rule, cost=ALWAYS_PAYS)), kind=tuned.kind)
