"""Evidence from an agent study: what became of fit episodes after actions that an entry proposed."""

from collections.abc import Iterable, Iterator

from heedful.agents.agent_fit import BRANCH, SHADOW
from heedful.agents.agent_metrics import SAME_SCORE
from heedful.agents.agent_workspace import AgentFolder, newest
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.row_file import RowFile
from heedful.errors import UsageError
from heedful.protocol.line_file import has_lines
from heedful.types import Evidence


def is_agent_study(folder: AgentFolder) -> bool:
    return has_lines(folder.episodes)


def read_agent_evidence(folder: AgentFolder) -> list[Evidence]:
    """The evidence of a study's fit side."""
    evidence = list(branch_evidence(newest(RowFile(folder.episodes, EpisodeRecord).rows).values()))
    if not evidence:
        raise UsageError(
            f"{folder.folder} has no branches: memory proposed no other valid action on the fit side, or the "
            "fit side is not played yet (heedful agent study)"
        )
    return evidence


def branch_evidence(records: Iterable[EpisodeRecord]) -> Iterator[Evidence]:
    """For each branch and each entry of the prompt that proposed its action: help, hurt or no difference.

    A branch differs from the episode without memory in one action, so the outcome is that action's. An
    episode is one task: of its branches only the first counts for an entry.
    """
    sound = [record for record in records if record.side == "fit" and not record.failed]
    episodes = {record.seed: record for record in sound if record.arm == SHADOW}
    for branch in sound:
        base = episodes.get(branch.seed)
        if branch.arm != BRANCH or base is None:
            continue
        at = len(branch.script) - 1
        for recall in base.steps[at].candidates[-1].record.recalls:
            yield Evidence(
                entry=recall.entry,
                version=recall.version,
                task=str(branch.seed),
                utility=_turned(branch.score - base.score),
                decision=str(at),
            )


def _turned(difference: float) -> float:
    """1 if an episode ends with a higher score, -1 if with a lower one, else 0."""
    if abs(difference) <= SAME_SCORE:
        return 0.0
    return 1.0 if difference > 0 else -1.0
