"""Which answers the policy chooses during a rollout: a pure function of the task."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import get_args

from heedful.errors import PolicyError
from heedful.limits import is_number
from heedful.types import Assignment, RolloutMode, Task, digest_of

KEY_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Whose answers the policy chooses.

    `shadow`: nobody's; the policy runs and is recorded, and the first answer is served. `canary`: those of a
    share of the users; the others get the first answer, and no second pass is made for them. A larger share
    keeps the users of a smaller one.
    """

    mode: RolloutMode
    share: float = 0.0
    """Of a canary: the share of users, or of conversations without a user."""
    salt: str = "heedful"
    """The key of the hash, at most 64 bytes; rollouts with different salts draw independent users."""

    def __post_init__(self) -> None:
        if self.mode not in get_args(RolloutMode):
            raise PolicyError(f"the mode of a rollout is {self.mode!r}; choose shadow or canary")
        if not is_number(self.share) or not 0 <= self.share <= 1:
            raise PolicyError(f"the share of a canary is {self.share!r}; it must be from 0 to 1")
        if self.mode == "shadow" and self.share:
            raise PolicyError(f"a shadow serves nobody, so it has no share, but the share is {self.share:g}")
        if not 0 < len(self.salt.encode()) <= blake2b.MAX_KEY_SIZE:
            raise PolicyError(f"the salt of a rollout needs 1 to {blake2b.MAX_KEY_SIZE} bytes: {self.salt!r}")

    def assign(self, task: Task) -> Assignment:
        """The arm of a task, the same for all tasks of its user or conversation."""
        key = blake2b(subject_of(task).encode(), key=self.salt.encode(), digest_size=KEY_BYTES).digest()
        place = int.from_bytes(key, "big") / 2 ** (8 * KEY_BYTES)
        return Assignment(
            mode=self.mode,
            arm="policy" if place < self.share else "first",
            share=self.share,
            key=key.hex(),
        )


def subject_of(task: Task) -> str:
    """The user of a task, by its scope; else its conversation, by the opening turns."""
    if user := task.scope.get("user"):
        return f"user {user}"
    turns = [message.content for message in task.earlier if message.role == "user"]
    opening = [message.content for message in task.earlier if message.role == "system"]
    first = turns[0] if turns else task.question
    return f"conversation {digest_of([task.instructions, opening, first, dict(task.scope)])}"
