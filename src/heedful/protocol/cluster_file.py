"""The file clusters.json of a study: which of its rows ask the same question, without their texts."""

from dataclasses import asdict
from functools import partial

import msgspec

from heedful.errors import LockError, MissingError, UsageError
from heedful.protocol.clusters import (
    NO_CLUSTERS,
    AskedQuestion,
    Clusters,
    MakeEmbedder,
    find_clusters,
    questions_digest,
)
from heedful.protocol.lock import Lock, read_lock
from heedful.protocol.setup import StudySetup
from heedful.protocol.workspace import Workspace, read_json, write_json
from heedful.types import Side

SIDES: tuple[Side, Side] = ("fit", "test")


def read_clusters(space: Workspace) -> Clusters:
    """The clusters of a study; none if its questions were never compared."""
    if not space.clusters.exists():
        return NO_CLUSTERS
    try:
        return msgspec.convert(read_json(space.clusters, ""), Clusters)
    except msgspec.ValidationError as error:
        again = (
            ", because the lock fixes it"
            if space.lock.exists()
            else ", or remove it and run heedful study fit again"
        )
        raise UsageError(
            f"{space.clusters} is not a file of clusters ({error}): restore the file{again}"
        ) from error


def study_clusters(space: Workspace, setup: StudySetup) -> Clusters:
    """The clusters of a study, found and written once; a lock fixes them.

    A file from the same questions is kept even if near-duplicates could be searched for only later:
    the rows that certify a harm limit must not change after others were used to refine a bank.
    """
    known = fit_clusters(space)
    if space.lock.exists() or known.questions == questions_digest(asked_questions(setup)):
        return known
    return write_clusters(space, setup)


def write_clusters(space: Workspace, setup: StudySetup) -> Clusters:
    """Compare the questions of a study and write its clusters."""
    clusters = find_clusters(asked_questions(setup), _installed_minilm())
    write_json(space.clusters, msgspec.to_builtins(asdict(clusters)))
    return clusters


def locked_clusters(space: Workspace, lock: Lock) -> Clusters:
    """The clusters of a locked study; a lock from before there were clusters accepts any."""
    clusters = read_clusters(space)
    if lock.clusters and clusters.digest != lock.clusters:
        raise LockError(
            f"the lock of {lock.study} is broken: {space.clusters} changed since {lock.locked_at}; "
            "restore the file"
        )
    return clusters


def fit_clusters(space: Workspace) -> Clusters:
    """The clusters by which the fit side is divided; a lock from before there were clusters used none."""
    if space.lock.exists() and not read_lock(space.lock).clusters:
        return NO_CLUSTERS
    return read_clusters(space)


def asked_questions(setup: StudySetup) -> list[AskedQuestion]:
    """The rows of both sides; no answers are read."""
    return [
        AskedQuestion(side=side, id=item.id, text=setup.benchmark.task(item).question)
        for side in SIDES
        for item in setup.splits.asked(side)
    ]


def _installed_minilm() -> MakeEmbedder | None:
    """MiniLM if its weights are on this machine; nothing is downloaded to compare questions."""
    try:
        from heedful.memory.embed import MiniLM
        from heedful.models import weights

        return partial(MiniLM, weights.path("all-minilm-l6-v2"))
    except MissingError:
        return None
