"""The service of `heedful serve`: its policies, upstream, store and limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from heedful.cli.asking import (
    LockedOptions,
    PolicyOptions,
    RunOptions,
    locked_controller,
    open_bundle,
    own_controller,
)
from heedful.cli.output import say
from heedful.cli.policy import NoPriorError
from heedful.control import Controller, run_sync
from heedful.dashboard.view import locked_bundle
from heedful.decisions import policy_id
from heedful.errors import UsageError
from heedful.memory.storage import Storage, open_storage
from heedful.models.chat_request import prompt_fields
from heedful.models.endpoints import forget_rejects, known_rejects
from heedful.models.headers import read_headers
from heedful.models.schemes import ModelOptions
from heedful.records import Decision, DecisionFilter
from heedful.rollout.assign import Rollout
from heedful.rollout.case import EMBEDDED, ShadowCase, models_of, with_these_entries
from heedful.rollout.promote import may_promote
from heedful.rollout.shadow import is_shadow, shadow_report
from heedful.serve.admission import Admission, ServeLimits
from heedful.serve.batched_journal import BatchedJournal
from heedful.serve.callers import Callers
from heedful.serve.key_file import read_keys
from heedful.serve.serve_metrics import ServeMetrics
from heedful.serve.served_policies import DEFAULT, PolicyShelf, ServedPolicy
from heedful.serve.service import Service, Streaming
from heedful.serve.upstream import upstream_of
from heedful.serve.warm_up import warm_up
from heedful.stages.compose import first_prompt
from heedful.telemetry import Telemetry, is_set_up
from heedful.types import DEFAULT_THRESHOLD, TaskTemplate

SUFFIX = ".policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of the command."""

    policies: tuple[str, ...]
    upstream: str
    model: str
    headers: tuple[str, ...]
    banks: tuple[str, ...]
    recall: str
    strict: bool
    keys: Path | None
    streaming: Streaming
    query_turns: int
    explore: float
    rollout: Rollout | None
    harm_limit: float | None
    """Serve a policy only if its shadow decisions show at most this share of hurt answers; None: always."""
    patience: float
    limits: ServeLimits
    timeout: float
    weights: str
    threads: int | None
    store: str | None
    telemetry: bool = False


def build_service(options: ServeOptions) -> Service:
    """All parts of the server, before it accepts requests."""
    read = None if options.keys is None else partial(read_keys, options.keys)
    keys = None if read is None else read()
    if options.telemetry and not is_set_up():
        say(
            "heedful: spans are dropped, because no OpenTelemetry SDK is set up: start the server with "
            "opentelemetry-instrument"
        )
    store = open_storage(options.store)
    run_sync(store.ready())
    journal = BatchedJournal(store.journal)

    memory: dict[str, str] = {}

    def load() -> Sequence[ServedPolicy]:
        run = RunOptions(
            patience=options.patience,
            explore=options.explore,
            rollout=options.rollout,
            observer=Telemetry() if options.telemetry else None,
        )
        if options.policies:
            loaded = [_locked(name, file, options, journal, run) for name, file in named(options.policies)]
        else:
            loaded = [_own(bank, options, store, journal, run) for bank in options.banks or (DEFAULT,)]
        problems = run_sync(warm_up(loaded))
        for bank, problem in problems.items():
            say(f"heedful: serving without bank {bank}: {problem}")
        memory.clear()
        memory.update(problems)
        return loaded

    policies = load()
    if options.harm_limit is not None:
        refuse_unproved(policies, store, options.harm_limit, options.model)
    if not options.upstream and len({p.controller.model.traits.fingerprint for p in policies}) > 1:
        raise UsageError("the policies were locked with different models; name one with --upstream")
    return Service(
        upstream=upstream_of(policies[0].controller.model, options.limits.at_once, options.timeout),
        shelf=PolicyShelf(load, policies),
        store=store,
        journal=journal,
        feedback=store.feedback,
        callers=Callers(keys, read),
        admission=Admission(options.limits, keyless=keys is None),
        metrics=ServeMetrics(),
        streaming=options.streaming,
        query_turns=options.query_turns,
        without_memory=memory,
    )


def refuse_unproved(policies: Sequence[ServedPolicy], store: Storage, limit: float, model: str) -> None:
    """Refuse policies whose harm in the shadow is not known to be within the limit.

    `model` restricts the evidence to the requests that named it; empty: all requests at the endpoint.
    """
    decisions = run_sync(store.journal.select(DecisionFilter()))
    shadows = [decision for decision in decisions if is_shadow(decision)]
    feedback = run_sync(store.feedback.of(shadows))
    for policy in policies:
        case = _case_of(policy.controller, model)
        own = [shadow for shadow in shadows if case.covers(shadow)]
        if not own:
            raise UsageError(f"policy {policy.name!r} cannot be promoted: {_without_shadows(case, shadows)}")
        _refuse_changed_banks(policy, own)
        promotion = may_promote(shadow_report(own, feedback, case.policy), limit)
        if not promotion.allowed:
            raise UsageError(f"policy {policy.name!r} cannot be promoted: {promotion.reason}")


def _case_of(controller: Controller, model: str) -> ShadowCase:
    traits = controller.model.traits
    return ShadowCase(
        policy=policy_id(controller.policy),
        endpoint=traits.endpoint,
        banks=frozenset(banks_of(controller)),
        model=traits.name if traits.endpoint == EMBEDDED else model,
    )


def _without_shadows(case: ShadowCase, shadows: Sequence[Decision]) -> str:
    """Why a policy has no evidence; other models that the requests named are listed."""
    models = models_of([shadow for shadow in shadows if replace(case, model="").covers(shadow)])
    if models:
        return f"its shadow decisions are about {', '.join(models)}, not about {case.model}; change --model"
    return (
        "this store has no shadow decisions of it with this endpoint and these banks; run heedful serve "
        "--shadow first"
    )


def _refuse_changed_banks(policy: ServedPolicy, shadows: Sequence[Decision]) -> None:
    """Refuse evidence about other content; say if a part of it is."""
    used = (policy.controller.policy.first, *policy.controller.policy.sources)
    specs = {name: policy.controller.sources[name].spec for name in used}
    same = with_these_entries(shadows, specs)
    banks = ", ".join(policy.banks)
    if not same:
        raise UsageError(
            f"policy {policy.name!r} cannot be promoted: the entries of {banks} changed after all of its "
            f"{len(shadows)} shadow decisions; run heedful serve --shadow with the present entries"
        )
    if same < len(shadows):
        say(
            f"heedful: {len(shadows) - same} of {len(shadows)} shadow decisions were made before the entries "
            f"of {banks} changed"
        )


def named(policies: Sequence[str]) -> list[tuple[str, Path]]:
    """The names and files of `--policy`; a file without a name is called as it is."""
    pairs = []
    for given in policies:
        name, equals, file = given.partition("=")
        path = Path(file if equals else given)
        pairs.append((name if equals else path.name.removesuffix(SUFFIX), path))
    names = [name for name, _ in pairs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"two policies are called {min(twice)!r}; name them with --policy NAME=FILE")
    return pairs


def _locked(
    name: str, file: Path, options: ServeOptions, journal: BatchedJournal, run: RunOptions
) -> ServedPolicy:
    locked = LockedOptions(
        study=None,
        bundle=file,
        data=None,
        strict=options.strict,
        url=options.upstream or None,
        model=options.model or None,
        weights=None,
        threads=options.threads,
    )
    opened = open_bundle(locked)
    controller = locked_controller(opened, journal, run)
    return ServedPolicy(
        name=name,
        controller=controller,
        banks=banks_of(controller),
        defaults=_defaults(controller.template),
        locked=locked_bundle(opened.bundle, opened.moved),
    )


def _own(
    bank: str, options: ServeOptions, store: Storage, journal: BatchedJournal, run: RunOptions
) -> ServedPolicy:
    """The shipped prior over a bank of the store."""
    chosen = PolicyOptions(
        banks=(bank,),
        combine=None,
        arm="value",
        signal=None,
        threshold=None,
        margin=None,
        placement="auto",
        recall=options.recall,
        similarity=DEFAULT_THRESHOLD,
        limit=3,
        template=TaskTemplate(),
    )
    model = ModelOptions(
        url=options.upstream,
        model=options.model,
        timeout=options.timeout,
        weights=options.weights,
        threads=options.threads,
        headers=read_headers(options.headers),
    )
    if "logprobs" in known_rejects(model.url, model.model):  # it may have learnt them since
        forget_rejects(model.url, model.model)
    try:
        controller, usable = own_controller(chosen, model, store, journal, run), True
    except NoPriorError:  # the upstream has no log-probs: requests pass through, and a header says so
        controller = own_controller(replace(chosen, arm="never"), model, store, journal, run)
        usable = False
    return ServedPolicy(name=DEFAULT, controller=controller, banks=(bank,), usable=usable)


def banks_of(controller: Controller) -> tuple[str, ...]:
    """The banks that the policy's sources recall from."""
    used = (controller.policy.first, *controller.policy.sources)
    specs = [controller.sources[name].spec for name in used]
    return tuple(dict.fromkeys(str(spec["bank"]) for spec in specs if spec.get("bank")))


def _defaults(template: TaskTemplate) -> dict[str, Any]:
    """The request fields that the lock fixed, for requests that do not set them."""
    fields = prompt_fields(first_prompt(template.task("?")))
    return {name: value for name, value in fields.items() if name != "messages"}
