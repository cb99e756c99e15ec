"""What the dashboard reads, and who looks at it."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from heedful.dashboard.markup import Markup
from heedful.decisions import policy_id
from heedful.ports import DecisionReader, FeedbackReader, Store
from heedful.types import Policy

if TYPE_CHECKING:
    from starlette.requests import Request

    from heedful.protocol.bundle import Bundle

MOST_CHARACTERS = 500
"""Of a parameter; SQLite refuses to search for very long texts."""
WHERE_IDS_ARE = "the header x-heedful-decision of an answer names it, and Decisions lists them all"
Section = Literal["today", "memory", "decisions", "policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a viewer sees who is one caller among others."""

    caller: str
    """Whose decisions."""
    bank: Callable[[str], bool]
    """Whether they may use a bank."""
    scope: Callable[[str, str], bool]
    """Whether they may use a key and value of a scope."""
    locked: "Callable[[], LockedPolicy | None]" = lambda: None
    """The policy that answers them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks at a page."""

    name: str
    admin: bool = False
    """Whether they may change the state of entries."""
    reach: Reach | None = None
    """None: they see everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPolicy:
    """The policy that answers, and what changed since it was locked."""

    policy: Policy
    study: str = ""
    lock: str = ""
    """Digest of the study's lock; empty: the policy is not locked."""
    locked_at: str = ""
    model: str = ""
    entries: Mapping[str, int] = field(default_factory=dict)
    """By source: the number of entries in its locked bank."""
    moved: tuple[str, ...] = ()
    """What changed since the lock."""

    @property
    def policy_id(self) -> str:
        return policy_id(self.policy)


def locked_bundle(bundle: "Bundle", moved: Sequence[str] = ()) -> LockedPolicy:
    """What a bundle locks; `moved` is the result of `check_moved`."""
    return LockedPolicy(
        policy=bundle.policy,
        study=bundle.study,
        lock=bundle.lock,
        locked_at=bundle.locked_at,
        model=bundle.model.name,
        entries={name: len(source.entries) for name, source in bundle.sources.items() if source.entries},
        moved=tuple(moved),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardView:
    """The ports that the dashboard reads."""

    store: Store
    journal: DecisionReader
    feedback: FeedbackReader
    viewer: "Callable[[Request], Viewer]"
    """Who sent a request; raises Starlette's `HTTPException` to refuse it."""
    locked: Callable[[], LockedPolicy | None] = lambda: None
    """The policy that answers now; None if it is not known."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Signs the tokens of forms; processes that serve the same dashboard share it."""
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What a page may know of a request."""

    viewer: Viewer
    token: str = ""
    """Of the forms on the page."""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def asked(self, name: str) -> str | None:
        """The beginning of a parameter of the query; None if it is absent or empty."""
        return self.query.get(name, "").strip()[:MOST_CHARACTERS] or None

    @property
    def page(self) -> int:
        """The page of a long list; the first one unless another is asked for."""
        asked = self.asked("page") or ""
        return int(asked) if asked.isdecimal() and len(asked) < 7 and int(asked) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The content of a page, without the frame."""

    title: str
    section: Section
    body: Markup
