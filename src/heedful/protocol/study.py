"""A study file: questions, model, sources, and how a policy may be chosen."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from heedful.benchmarks.answer_patterns import Reading
from heedful.benchmarks.judge import INSTRUCTIONS
from heedful.benchmarks.metrics import JUDGE
from heedful.errors import UsageError
from heedful.memory.bank import RECALL_METHODS
from heedful.mismatch import mismatch
from heedful.priors import read_prior
from heedful.sources.kinds import SOURCES
from heedful.stages.answer import refuse_bad_pattern
from heedful.stages.confidence import SIGNALS
from heedful.types import DEFAULT_RECALL, DEFAULT_THRESHOLD, CostUnit, Kind, Placement, Side, Task

Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, lt=1)]
STORE = "store:"
"""The start of a bank's name that stands for a bank of the store."""
STORE_BANK = re.compile(r"store:\w[\w. -]*")
Promise = Literal["harm", "no-loss"]
FOLDER_NAME = "use at most 100 letters, digits, '-', '_', '+', '.' and spaces, with no '.' at the start"
MOST_WEIGHT = 1000
"""Of a worker, which takes this many times the study's slots at once."""
WITHOUT_BANK = ("retry", "reflect", "vote", "verify")


class QuestionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Custom questions: one file to be split in halves, or one per side."""

    file: str = ""
    fit: str = ""
    test: str = ""
    metric: str = "text"
    instructions: str = ""
    answer: Reading | None = None
    """How the answer is found in a reply; None: as the metric needs it."""
    answer_pattern: str | None = None
    max_tokens: Positive = 64
    judge: "JudgeSettings | None" = None
    """The model of the metric `judge`."""


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedded model by its weights, or an endpoint by its URL."""

    weights: str = "smollm2-135m"
    url: str = ""
    """If empty, the first of `urls`; it identifies the model in the ledger and the lock."""
    urls: tuple[str, ...] = ()
    """Endpoints that serve the same model and record together, each with an optional weight: `URL*2`."""
    model: str = ""
    slots: Positive = 4
    context: Positive = 2048
    repeatable: bool = False
    """The embedded model reads every prompt from its start, one request at a time."""
    threads: Positive | None = None
    timeout: Annotated[float, Meta(gt=0)] = 600.0
    headers: Mapping[str, str] = {}
    """Headers to add to every request; `$NAME` is the value of an environment variable."""
    extra: Mapping[str, Any] = {}
    """Body fields to add to every request, such as reasoning_effort."""

    def __post_init__(self) -> None:
        if self.urls and not self.url:
            msgspec.structs.force_setattr(self, "url", read_weight(self.urls[0])[0])


def read_weight(text: str) -> tuple[str, int]:
    """A worker's address and its weight, which `*N` at the end gives."""
    address, star, weight = text.rpartition("*")
    if not star:
        return text, 1
    if not weight.isdecimal() or not 1 <= int(weight) <= MOST_WEIGHT:
        raise UsageError(
            f"the weight of {text!r} is not a whole number from 1 to {MOST_WEIGHT}; write it as {address}*2"
        )
    return address, int(weight)


class JudgeSettings(ModelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that grades; its own endpoint or weights."""

    instructions: str = INSTRUCTIONS
    max_tokens: Positive = 8


class SplitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rows of each side, drawn by seed; None: all. `pool` rows of the fit side are for banks."""

    fit: Positive | None = None
    test: Positive | None = None
    pool: Annotated[int, Meta(ge=0)] = 0
    unused: Positive | None = None
    """Ask this many rows on the test side that the same split without this setting leaves unused."""
    seed: Annotated[int, Meta(ge=0)] = 0


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bank with a placement, or a memory-free control."""

    kind: str = "memory"
    bank: str = ""
    """A file of entries, `store:NAME` for a bank of the store, or `pool` for exemplars or facts made from the
    rows left for banks."""
    entry_kind: Kind = "rule"
    """The kind of entries that do not specify one, as for `heedful bank import --kind`; with `pool`, `fact`
    makes each row a fact, its question with the right answer, instead of an exemplar."""
    responses: str = ""
    """With `pool`: a file of worked answers by row (`heedful bank build`); other rows are left out."""
    placement: Placement = "auto"
    recall: str = DEFAULT_RECALL
    threshold: float = DEFAULT_THRESHOLD
    limit: Positive = 3
    heading: str = "Notes that may help:"
    temperature: Annotated[float, Meta(ge=0)] | None = None
    """For retry (None: 0), vote and verify (None: 0.7; must be above 0)."""
    sample: Annotated[int, Meta(ge=0, lt=1000)] = 0
    """Of a retry with a temperature: tells several samples of the same prompt apart."""
    sides: Annotated[tuple[Side, ...], Meta(min_length=1)] = ("fit", "test")
    options: Mapping[str, str | int | float | bool] = {}
    """Options of a plug-in's kind."""

    @property
    def bank_file(self) -> str:
        """The file of the bank in the study's folder; a bank of the store is copied there."""
        if not self.bank.startswith(STORE):
            return "" if self.bank == "pool" else self.bank
        return f"store-{self.bank.removeprefix(STORE)}.jsonl"

    @property
    def role(self) -> str:
        """`memory` for every source with a bank, else its kind."""
        return "memory" if self.bank else self.kind


THRESHOLD_FAMILIES = ("gate", "choose", "agree", "cascade", "dual")
"""The paper's families, and agreement."""
USUAL_SIGNALS = ("mean", "sum", "first", "min", "median", "p10", "margin", "answer_mean")
"""Signals that a fit tries if the study names none; they need log-probs."""
VALUE = "value"
FAMILIES = (*THRESHOLD_FAMILIES, VALUE)
AUTO, NONE = "auto", "none"


class FitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a policy is chosen."""

    cost: Annotated[float, Meta(ge=0)] = 0.01
    """λ of the objective accuracy − λ·calls."""
    folds: Annotated[int, Meta(ge=2)] = 5
    families: Annotated[tuple[str, ...], Meta(min_length=1)] = FAMILIES
    signals: tuple[str, ...] = USUAL_SIGNALS
    firsts: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """Sources that may decode first; None: no memory and every bank."""
    calibrated: bool = True
    """Whether a calibrator may replace the raw confidence."""
    harm_limit: Share | None = None
    confidence: Share = 0.95
    seed: Annotated[int, Meta(ge=0)] = 0
    unit: CostUnit = "calls"
    """What λ prices: calls, or thousands of tokens."""
    sources: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """Sources that a policy may consult; None: every bank."""
    prior: str = AUTO
    """The prior of value policies: `auto` by the kind of answers, `none`, or a name."""
    promise: Promise = "harm"
    """What is certified: with a harm limit, that harm stays below it; `no-loss`: accuracy does not fall."""

    @property
    def certifies(self) -> bool:
        """Whether only a certified policy may be chosen."""
        return self.harm_limit is not None or self.promise == "no-loss"


def settings_fields(settings: FitSettings) -> dict[str, object]:
    """The settings as digests see them: a field that came later counts only if it is set."""
    fields: dict[str, object] = msgspec.to_builtins(settings)
    later = {"promise": "harm", "unit": "calls", "sources": None, "prior": AUTO}
    return {name: value for name, value in fields.items() if name not in later or value != later[name]}


class Study(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study file."""

    name: str
    benchmark: str = ""
    questions: QuestionSettings | None = None
    model: ModelSettings = ModelSettings()
    split: SplitSettings = SplitSettings()
    sources: Mapping[str, SourceSettings]
    fit: FitSettings = FitSettings()
    seeds: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)] = (0,)
    reuse: str = ""
    """The folder of an earlier study, relative to this file: passes with the same prompt and model are copied
    from its ledger instead of being decoded again."""
    notes: str = ""
    """Shown in the report: what was explored before this study, and on which rows."""


def read_study(file: Path) -> Study:
    """Read a study from a TOML file; an error names the wrong key or value."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        refuse_infinite(tables, file)
        study = msgspec.convert(tables, Study)
    except OSError as error:
        raise UsageError(f"the study file {file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the study file {file} is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"the study file {file} is wrong: {mismatch(error)}") from error
    _check(study, file)
    return study


def refuse_infinite(tables: Mapping[str, object], file: Path) -> None:
    """Refuse infinite numbers and NaN, which TOML allows."""
    if (key := _not_finite(tables)) is not None:
        raise UsageError(f"the study file {file} is wrong: `{key}` must be a finite number")


def _not_finite(value: object, key: str = "") -> str | None:
    """The key of a number that is infinite or NaN, which TOML allows."""
    if isinstance(value, float) and not isfinite(value):
        return key
    pairs: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    keys = (_not_finite(part, f"{key}.{name}".lstrip(".")) for name, part in pairs)
    return next((key for key in keys if key is not None), None)


def _check_fit(study: Study, file: Path) -> None:
    """Refuse unknown or unrecorded families, signals and sources, which would be ignored silently."""
    settings = study.fit
    if settings.promise == "no-loss" and settings.harm_limit is not None:
        raise UsageError(
            f"{file}: [fit] has a harm_limit and promise = 'no-loss', but a policy is certified for one: "
            "leave out the other"
        )
    if settings.prior not in (AUTO, NONE):
        read_prior(settings.prior)
    banks = [name for name, one in study.sources.items() if one.bank and "test" in one.sides]
    both = [name for name, one in study.sources.items() if set(one.sides) == {"fit", "test"}]
    for what, given, known in (
        ("families", settings.families, FAMILIES),
        ("signals", settings.signals, list(SIGNALS)),
        ("firsts", settings.firsts or (), ["none", *banks]),
        ("sources", settings.sources or (), both),
    ):
        if wrong := [one for one in given if one not in known]:
            raise UsageError(
                f"{file}: [fit] {what} has {', '.join(map(repr, wrong))}; choose from {', '.join(known)}"
            )


def _check_temperature(name: str, source: SourceSettings, file: Path) -> None:
    """Refuse a temperature that has no effect or makes all samples equal."""
    if source.sample and not (source.kind == "retry" and source.temperature):
        raise UsageError(f"{file}: [sources.{name}] has a sample, which needs kind retry and a temperature")
    if source.temperature is None:
        return
    if source.kind not in ("retry", "vote", "verify"):
        raise UsageError(f"{file}: [sources.{name}] has a temperature, but {source.kind} decodes greedily")
    if source.kind != "retry" and source.temperature == 0:
        raise UsageError(f"{file}: [sources.{name}] samples: its temperature must be above 0")


def _check(study: Study, file: Path) -> None:
    if not is_folder_name(study.name):
        raise UsageError(f"{file}: a study cannot be named {study.name!r}; {FOLDER_NAME}")
    if bool(study.benchmark) == (study.questions is not None):
        raise UsageError(f"{file}: give either benchmark = NAME or a [questions] table")
    if own := study.questions:
        if bool(own.file) == bool(own.fit) or bool(own.fit) != bool(own.test):
            raise UsageError(f"{file}: [questions] needs file, or fit and test")
        refuse_bad_pattern(Task(question="", answer_pattern=own.answer_pattern))
        if own.answer is not None and own.answer_pattern is not None:
            raise UsageError(f"{file}: [questions] has answer and answer_pattern; leave out one")
        if (own.metric == JUDGE) != (own.judge is not None):
            raise UsageError(
                f"{file}: the metric judge needs the table [questions.judge], and no other metric does"
            )
    if len(set(study.seeds)) < len(study.seeds):
        raise UsageError(f"{file}: seeds lists a seed twice")
    if study.model.repeatable and (study.model.url or study.model.slots != 1):
        raise UsageError(f"{file}: [model] repeatable needs the embedded model with slots = 1")
    _check_fit(study, file)
    for name, source in study.sources.items():
        if name == "none":
            raise UsageError(f"{file}: the source name 'none' is reserved for the memory-free first pass")
        if not is_folder_name(name):
            raise UsageError(f"{file}: a source cannot be named {name!r}; {FOLDER_NAME}")
        for what, given, known in (("kind", source.kind, SOURCES), ("recall", source.recall, RECALL_METHODS)):
            if given not in known:
                raise UsageError(
                    f"{file}: [sources.{name}] {what} is {given!r}; choose one of {', '.join(known)}"
                )
        if (source.kind == "memory" and not source.bank) or (source.kind in WITHOUT_BANK and source.bank):
            raise UsageError(
                f"{file}: [sources.{name}] must have a bank if its kind is memory, and none otherwise"
            )
        if source.bank.startswith(STORE) and not re.fullmatch(
            r"[\w][\w. -]*", source.bank.removeprefix(STORE)
        ):
            raise UsageError(
                f"{file}: [sources.{name}] bank is {source.bank!r}; write it as store:NAME, with a name of "
                "letters, digits, spaces, dots, _ and -"
            )
        if source.options and source.kind in ("memory", *WITHOUT_BANK):
            raise UsageError(f"{file}: [sources.{name}] has options, which only plug-in kinds accept")
        _check_temperature(name, source, file)
        if source.responses and (source.bank != "pool" or source.entry_kind == "fact"):
            raise UsageError(
                f"{file}: [sources.{name}] has responses, which require bank = 'pool' and no facts"
            )


def is_folder_name(name: str) -> bool:
    """Whether a folder can have this name: those of studies and experiments do."""
    plain = all(char.isalnum() or char in " -_.+" for char in name)
    return plain and name == name.strip() and not name.startswith(".") and 0 < len(name) <= 100
