"""How a review judges: the rule, its error, and what may go at once."""

from dataclasses import dataclass

from heedful.errors import UsageError
from heedful.governance.judge import require_rule
from heedful.types import Entry, State


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementTerms:
    """How entries are judged."""

    rule: str = "betting"
    confidence: float = 0.95
    max_share: float = 0.25
    """At most this share of a bank's live entries is removed at once, as groups or one by one."""
    quarantine: bool = False
    """Condemned entries are set aside; a later review without quarantine retires them."""
    own_outcomes: bool = False
    """An entry goes only if the outcomes that are its own condemn it, too."""
    credit_command: str = ""
    """The command that runs leave-one-out on outcomes that several entries share."""

    def __post_init__(self) -> None:
        require_rule(self.rule)
        if not 0 < self.confidence < 1:
            raise UsageError(f"a confidence must be between 0 and 1, not {self.confidence}")
        if not 0 < self.max_share <= 1:
            raise UsageError(f"the share that may go must be above 0 and at most 1, not {self.max_share}")

    @property
    def delta(self) -> float:
        return 1 - self.confidence

    @property
    def state(self) -> State:
        """The state of what goes."""
        return "quarantined" if self.quarantine else "retired"

    def moves(self, entry: Entry) -> bool:
        """Whether the entry's state changes if it is condemned."""
        return entry.state not in ("protected", "retired", self.state)
