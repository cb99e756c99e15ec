"""Signals that ask questions of their own: which a study records, and which a fit may use."""

from dataclasses import dataclass

import msgspec

from heedful.errors import LogprobError, RequestError
from heedful.ports import Model
from heedful.protocol.setup import StudySetup
from heedful.protocol.study import USUAL_SIGNALS, FitSettings
from heedful.protocol.table import Table
from heedful.stages.compose import first_prompt
from heedful.stages.confidence import SIGNALS, WITHOUT_LOGPROBS, check_logprobs

TRIED_QUESTIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalPlan:
    """What a recording measures besides the signals that come with log-probs."""

    signals: tuple[str, ...]
    problem: str = ""
    """Why log-probs cannot be used; empty if they can, or if the study does not need them."""


def named_signals(settings: FitSettings) -> tuple[str, ...]:
    """The signals of a study file that ask questions of their own."""
    return tuple(name for name in settings.signals if SIGNALS[name].extra_calls)


async def plan_signals(setup: StudySetup, model: Model) -> SignalPlan:
    """Ask a question to see whether log-probs can be used; without them, a study needs another signal.

    A study that names no signals then uses agreement; one that names only signals of log-probs is refused.
    """
    settings = setup.study.fit
    named = named_signals(settings)
    problem = await _logprob_problem(setup, model)
    if problem and not named:
        if settings.signals != USUAL_SIGNALS:
            raise LogprobError(
                f"nothing was recorded: {problem}; or set [fit] signals to agreement, ptrue or stated, which "
                "need none"
            )
        named = (WITHOUT_LOGPROBS,)
    return SignalPlan(signals=named, problem=problem)


async def _logprob_problem(setup: StudySetup, model: Model) -> str:
    """Why the model's log-probs cannot be used; empty if they can.

    A question that the endpoint refuses says nothing about its log-probs, so a few more are tried.
    """
    *others, last = (setup.splits.fit or setup.splits.test)[:TRIED_QUESTIONS]
    for item in (*others, last):
        try:
            check_logprobs(await model.decode(first_prompt(setup.benchmark.task(item))))
        except LogprobError as error:
            return str(error)
        except RequestError:
            if item is last:
                raise
            continue
        break
    return ""


def usable_settings(settings: FitSettings, table: Table) -> FitSettings:
    """The settings of a fit; if the passes have no log-probs and the study names no signals, with those
    signals that were measured instead."""
    measured = table.column("none").signals
    if settings.signals != USUAL_SIGNALS or any(name in measured for name in USUAL_SIGNALS):
        return settings
    return msgspec.structs.replace(settings, signals=tuple(measured), calibrated=False)
