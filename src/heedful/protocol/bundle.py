"""A bundle: a locked policy with everything it needs to answer, in one JSON file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from heedful.decisions import policy_fields, read_policy
from heedful.errors import LockError, UsageError
from heedful.memory.bank import MemoryBank
from heedful.memory.likeness import answer_similarity
from heedful.ports import Model, Source
from heedful.protocol.endpoint_probe import EndpointProbe, probe
from heedful.protocol.setup import make_source
from heedful.protocol.study import ModelSettings, SourceSettings
from heedful.protocol.study_model import study_model
from heedful.protocol.workspace import read_json, write_json
from heedful.stages.value import compares_meanings
from heedful.stages.value_features import Similarity
from heedful.types import Entry, Policy, TaskTemplate, digest_of

FORMAT = 1
"""The version of the file's layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSource:
    """A source of the policy: its settings, and the entries of its bank if it has one."""

    settings: SourceSettings
    seed: int = 0
    entries: tuple[Entry, ...] = ()
    digest: str
    """Of the source's spec, which contains the digest of the bank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleModel:
    """The model that the policy was locked with."""

    settings: ModelSettings
    name: str
    fingerprint: str
    probe: EndpointProbe | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A locked policy, its task template, model settings and sources with their entries."""

    study: str
    lock: str
    """Digest of the study's lock."""
    locked_at: str
    policy: Policy
    task: TaskTemplate
    model: BundleModel
    sources: Mapping[str, BundleSource]
    format: int = FORMAT

    def make_sources(self) -> dict[str, Source]:
        """The sources by name, with their banks."""
        return {name: _source(name, source) for name, source in self.sources.items()}

    def make_model(self) -> Model:
        return study_model(self.model.settings)

    @property
    def compares_meaning(self) -> bool:
        """Whether recall or the policy needs the weights of the embedding model."""
        settings = [source.settings for source in self.sources.values()]
        recalled = any(source.bank and source.recall != "bm25" for source in settings)
        return recalled or self.similarity is not None

    @property
    def similarity(self) -> Similarity | None:
        """How alike two answers are, if the policy compares them by meaning."""
        value = self.policy.value
        return answer_similarity if value is not None and compares_meanings(value.trees) else None


def bundle_fields(bundle: Bundle) -> dict[str, Any]:
    """A bundle as JSON, with its own digest; `read_bundle` is the inverse."""
    fields: dict[str, Any] = msgspec.to_builtins(replace(bundle, policy=Policy()))
    fields["policy"] = policy_fields(bundle.policy)
    return {**fields, "digest": digest_of(fields)}


def write_bundle(file: Path, bundle: Bundle) -> None:
    write_json(file, bundle_fields(bundle))


def read_bundle(file: Path) -> Bundle:
    """A bundle from its file; an edited file does not match its own digest."""
    try:
        raw = read_json(file, "heedful study export STUDY --to FILE writes a bundle")
    except UsageError as error:
        if not file.is_file():
            raise
        raise UsageError(
            f"{file} is not a bundle: heedful study export STUDY --to FILE writes one"
        ) from error
    if raw.get("format") != FORMAT or "digest" not in raw:
        raise UsageError(
            f"{file} is not a bundle that this version of heedful can read: "
            "write it with heedful study export STUDY --to FILE"
        )
    fields = {name: value for name, value in raw.items() if name != "digest"}
    if digest_of(fields) != raw["digest"]:
        raise LockError(f"{file} was edited and does not match its digest; export the bundle again")
    try:
        return msgspec.convert({**fields, "policy": read_policy(fields["policy"])}, Bundle)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise UsageError(f"{file} cannot be read by this version of heedful: {error}") from error


async def check_moved(
    bundle: Bundle, model: Model, moved: Sequence[str] = (), *, strict: bool = False
) -> list[str]:
    """Everything that changed since the lock; with `strict`, raise a `LockError` that names it.

    `moved` names what is known already. A strict check also asks an endpoint one short question, because
    its name does not identify its weights.
    """
    names = [*moved, *_moved_sources(bundle), *_moved_model(bundle, model)]
    if strict and (before := bundle.model.probe) is not None:
        now = await probe(model)
        names += [] if now is not None and before.same(now) else ["the endpoint's replies"]
    if strict and names:
        raise LockError(f"since {bundle.study} was locked, {', '.join(names)} changed; undo the change")
    return names


def _moved_sources(bundle: Bundle) -> list[str]:
    sources = bundle.make_sources()
    return [
        f"source {name}"
        for name, bundled in bundle.sources.items()
        if digest_of(dict(sources[name].spec)) != bundled.digest
    ]


def _moved_model(bundle: Bundle, model: Model) -> list[str]:
    locked, now = bundle.model, model.traits
    if now.fingerprint == locked.fingerprint:
        return []
    return [
        f"model (locked: {locked.name}, {locked.fingerprint[:8]}; now: {now.name}, {now.fingerprint[:8]})"
    ]


def _source(name: str, bundled: BundleSource) -> Source:
    settings, bank = bundled.settings, None
    if settings.bank:
        bank = MemoryBank(name, bundled.entries, method=settings.recall, threshold=settings.threshold)
    return make_source(settings, bank, bundled.seed)
