"""Make a bundle from a locked study."""

from dataclasses import dataclass
from pathlib import Path

from heedful.errors import LockError, UsageError
from heedful.protocol.bundle import Bundle, BundleModel, BundleSource
from heedful.protocol.lock import Lock, read_lock, serving_digests
from heedful.protocol.setup import StudySetup, prepare
from heedful.protocol.workspace import Workspace
from heedful.types import Task, TaskTemplate, digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyBundle:
    """The bundle of a study as it is now, and the names of what changed since its lock."""

    bundle: Bundle
    moved: tuple[str, ...]


def study_bundle(space: Workspace, data: Path | None = None) -> StudyBundle:
    """The locked policy with the sources, banks, prompts and model settings of the study."""
    lock = read_lock(space.lock)
    setup = prepare(space.study, data)
    named = dict.fromkeys((lock.policy.first, *lock.policy.sources))
    sources, seed = setup.sources("test", setup.study.seeds[0]), setup.study.seeds[0]
    bundled = {
        name: BundleSource(
            settings=setup.study.sources[name],
            seed=seed,
            entries=tuple(setup.banks[name].entries()) if name in setup.banks else (),
            digest=digest_of(dict(sources[name].spec)),
        )
        for name in named
        if name in setup.study.sources
    }
    bundle = Bundle(
        study=lock.study,
        lock=lock.lock,
        locked_at=lock.locked_at,
        policy=lock.policy,
        task=task_template(setup.tasks()),
        model=BundleModel(
            settings=setup.study.model,
            name=lock.model.name,
            fingerprint=lock.digests["model"],
            probe=lock.model.probe,
        ),
        sources=bundled,
    )
    return StudyBundle(bundle=bundle, moved=tuple(_moved(lock, setup, bundled)))


def export_study(space: Workspace, data: Path | None = None) -> Bundle:
    """The bundle of a study, if it contains what was locked."""
    made = study_bundle(space, data)
    if made.moved:
        raise LockError(
            f"{', '.join(made.moved)} changed since {made.bundle.study} was locked: "
            "undo the change, or make and lock a new study"
        )
    return made.bundle


def task_template(tasks: list[Task]) -> TaskTemplate:
    """The fields that all tasks share."""
    shared = {(t.instructions, t.answer_pattern, t.max_tokens) for t in tasks}
    if len(shared) > 1 or any(task.schema is not None for task in tasks):
        raise UsageError(
            "the questions of this study differ in instructions, answer pattern, schema or length, so a "
            "question alone does not make a task: give each task to heedful.Controller in Python"
        )
    [(instructions, pattern, max_tokens)] = shared
    return TaskTemplate(instructions=instructions, answer_pattern=pattern, max_tokens=max_tokens)


def _moved(lock: Lock, setup: StudySetup, used: dict[str, BundleSource]) -> list[str]:
    """The names of banks, sources and prompts whose digests differ from the lock's."""
    now = serving_digests(setup)

    def changed(name: str) -> bool:
        return now.get(name) != lock.digests.get(name)

    names = []
    for name in used:  # a changed bank changes the digest of its source too
        names += next(([f"{what} {name}"] for what in ("bank", "source") if changed(f"{what}:{name}")), [])
    return [*names, *(["prompts"] if changed("prompts") else [])]
