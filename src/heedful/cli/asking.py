"""The controller of `heedful ask`: from options, or from a locked study or bundle."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import structs

from heedful.cli.model_options import learn_fields
from heedful.cli.options import refuse_idle
from heedful.cli.output import say
from heedful.cli.policy import Arm, Combine, policy_of, prior_policy, refuse_combination
from heedful.cli.resources import open_bank, open_model, pull_weights, require_bank
from heedful.control import MEMORY_FREE, Controller
from heedful.errors import StoreError, UsageError
from heedful.memory import MemoryBank
from heedful.memory.entries import refuse_bank_name
from heedful.memory.storage import Storage, open_storage
from heedful.models.catalogue import CATALOGUE
from heedful.models.schemes import ModelOptions
from heedful.ports import Bank, Journal, Model, Observer
from heedful.rollout.assign import Rollout
from heedful.sources import MemorySource
from heedful.stages.confidence import WITHOUT_LOGPROBS, signal_named
from heedful.types import Placement, Policy, TaskTemplate

if TYPE_CHECKING:
    from heedful.protocol.bundle import Bundle

MEMORY = "memory"
"""The name of the source that recalls from a single bank; several are named by their banks."""
LOCKED_SECONDS = 5.0
"""How long an answer may wait for a store that another process has locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """The options that decide how an answer is made; a lock replaces all of them."""

    banks: tuple[str, ...]
    combine: Combine | None
    """None: cascade."""
    arm: Arm
    signal: str | None
    """None: the one that the model's log-probs allow."""
    threshold: float | None
    """None: the signal's own."""
    margin: float | None
    """None: 0; of a value policy, the prior's."""
    placement: Placement
    recall: str
    similarity: float
    limit: int
    template: TaskTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedOptions:
    """Which lock decides, and what of its model the command line replaces."""

    study: Path | None
    bundle: Path | None
    data: Path | None
    strict: bool
    url: str | None
    model: str | None
    weights: str | None
    threads: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a controller runs, whatever its policy."""

    patience: float
    explore: float
    rollout: Rollout | None = None
    observer: Observer | None = None


def rollout_of(context: typer.Context, shadow: bool, canary: float | None) -> Rollout | None:
    """The rollout that the options describe; None: the policy decides every answer."""
    if canary == 0:
        refuse_idle(context, ("explore",), "with --canary 0, which serves every first answer")
    if not shadow:
        return None if canary is None else Rollout(mode="canary", share=canary)
    refuse_idle(context, ("canary", "explore"), "with --shadow, which serves every first answer")
    return Rollout(mode="shadow")


def open_journal(store: str | None) -> tuple[Storage | None, Journal | None]:
    """The store and its journal; both None if the store fails, because a store never costs the answer."""
    try:
        opened = open_storage(store, wait=LOCKED_SECONDS)
    except StoreError as error:
        say(f"heedful: answering without memory: {error}")
        return None, None
    return opened, opened.journal


def own_controller(
    options: PolicyOptions,
    model: ModelOptions,
    store: Storage | None,
    journal: Journal | None,
    run: RunOptions,
) -> Controller:
    """A controller with the policy that the options describe."""
    names = {bank: bank for bank in options.banks} if len(options.banks) > 1 else {options.banks[0]: MEMORY}
    if reserved := [name for name in names.values() if name in MEMORY_FREE]:
        raise UsageError(f"a bank named {reserved[0]!r} cannot be combined with others: rename it")
    for bank in options.banks:
        refuse_bank_name(bank)
    refuse_combination(options.arm, options.banks, options.combine)
    sources = {
        name: MemorySource(bank=_bank(options, bank, store), placement=options.placement, limit=options.limit)
        for bank, name in names.items()
    }
    _policy(options, list(names.values()), logprobs=True)  # refuse nonsense before a model is opened
    measuring = options.arm in ("gate", "choose", "value") and options.signal is None
    if model.url and model.logprobs and measuring:
        learn_fields(model)
    answering = open_model(model)
    return Controller(
        model=answering,
        policy=_policy(options, list(names.values()), logprobs=answering.traits.logprobs),
        sources=sources,
        journal=journal,
        patience=run.patience,
        explore=run.explore,
        rollout=run.rollout,
        observer=run.observer,
        template=options.template,
    )


def _policy(options: PolicyOptions, sources: Sequence[str], *, logprobs: bool) -> Policy:
    """The policy that the options describe, for a model with or without log-probs."""
    if options.arm == "value":
        return prior_policy(sources, options.margin, logprobs=logprobs)
    measured = signal_named(options.signal or ("mean" if logprobs else WITHOUT_LOGPROBS))
    threshold = measured.threshold if options.threshold is None else options.threshold
    combine = options.combine or "cascade"
    return policy_of(options.arm, sources, measured.name, threshold, options.margin or 0.0, combine)


def _bank(options: PolicyOptions, name: str, store: Storage | None) -> Bank:
    """The bank in the store; an empty one if there is no store, or the arm uses no memory."""
    if store is None:
        return MemoryBank(name, ())
    try:
        if name != "default":
            require_bank(store, name)
        if options.arm in ("never", "retry"):
            return MemoryBank(name, ())
        return open_bank(store, name, options.recall, options.similarity)
    except StoreError as error:  # a memory failure never costs the answer
        say(f"heedful: answering without memory: {error}")
        return MemoryBank(name, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBundle:
    """A bundle with its model, and what changed since the lock."""

    bundle: "Bundle"
    model: Model
    moved: tuple[str, ...]


def open_bundle(options: LockedOptions) -> OpenBundle:
    """The bundle of a study or a file; stderr names what changed since the lock."""
    from heedful.protocol.bundle import check_moved, read_bundle
    from heedful.protocol.export import study_bundle
    from heedful.protocol.workspace import open_workspace

    if options.study is not None:
        made = study_bundle(open_workspace(options.study, None), options.data)
        bundle, moved = made.bundle, made.moved
    else:
        assert options.bundle is not None, "a lock is a study or a bundle"
        bundle, moved = read_bundle(options.bundle), ()
    given = {name: getattr(options, name) for name in ("url", "model", "weights", "threads")}
    settings = structs.replace(bundle.model.settings, **{k: v for k, v in given.items() if v is not None})
    bundle = replace(bundle, model=replace(bundle.model, settings=settings))
    if bundle.compares_meaning:
        pull_weights("all-minilm-l6-v2")
    if not settings.url and settings.weights in CATALOGUE:
        pull_weights(settings.weights)
    model = bundle.make_model()
    names = asyncio.run(check_moved(bundle, model, moved, strict=options.strict))
    if names:
        say(f"heedful: changed since {bundle.study} was locked: {', '.join(names)}")
    return OpenBundle(bundle=bundle, model=model, moved=tuple(names))


def locked_controller(opened: OpenBundle, journal: Journal | None, run: RunOptions) -> Controller:
    """A controller with the locked policy of a bundle."""
    bundle = opened.bundle
    return Controller(
        model=opened.model,
        policy=bundle.policy,
        sources=bundle.make_sources(),
        journal=journal,
        patience=run.patience,
        explore=run.explore,
        rollout=run.rollout,
        observer=run.observer,
        similarity=bundle.similarity,
        template=bundle.task,
    )
