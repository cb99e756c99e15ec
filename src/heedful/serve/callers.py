"""Who calls, and what a caller may use."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heedful.serve.refusal import RefusalError
from heedful.types import CALLER

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a caller may use; `*` is everything."""

    policies: tuple[str, ...] = (ANY,)
    banks: tuple[str, ...] = (ANY,)
    scopes: tuple[str, ...] = ()
    """Scopes that a request may name, as KEY=VALUE or KEY=*."""
    admin: bool = False
    at_once: int | None = None
    """Maximum number of concurrent requests."""

    def allows_policy(self, name: str) -> bool:
        return ANY in self.policies or name in self.policies

    def allows_bank(self, name: str) -> bool:
        return ANY in self.banks or name in self.banks

    def allows_scope(self, key: str, value: str) -> bool:
        return bool({ANY, f"{key}={ANY}", f"{key}={value}"}.intersection(self.scopes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A caller by name; without keys there is one without a name, who may do everything."""

    name: str
    rights: Rights

    @property
    def limit(self) -> str:
        """Why something is out of reach, in an error message; nothing is, for a caller without a key."""
        return " that this key may use" if self.name else ""

    def owns(self, scope: "dict[str, str] | object") -> bool:
        """Whether a decision with this task scope was made for the caller; an admin sees all."""
        owner = scope.get(CALLER, "") if isinstance(scope, dict) else ""
        return self.rights.admin or owner == self.name


NOBODY = Caller(name="", rights=Rights(policies=(), banks=()))
"""The caller of a route that needs no key."""
LOCAL = Caller(name="", rights=Rights(scopes=(ANY,), admin=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerKey:
    """A caller's key as it is stored: only its hash."""

    hash: str
    caller: Caller


def new_key() -> str:
    """A random key."""
    return f"hk-{secrets.token_urlsafe(32)}"


def key_hash(key: str) -> str:
    """The hash of a key; keys are random, so one round of sha256 is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


@dataclass(slots=True)
class Callers:
    """Finds the caller of a request by its bearer key; None: no keys are needed."""

    keys: Sequence[CallerKey] | None = None
    read: Callable[[], Sequence[CallerKey]] | None = None
    """Reads the keys again, for a reload."""

    def caller_of(self, authorization: str) -> Caller:
        """The caller with this `Authorization` header; every key is compared, in constant time."""
        if self.keys is None:
            return LOCAL
        scheme, _, rest = authorization.strip().partition(" ")
        given = key_hash(rest.strip() if scheme.lower() == "bearer" else authorization.strip())
        found = [known.caller for known in self.keys if hmac.compare_digest(known.hash, given)]
        if not found:
            raise RefusalError(401, "the key is missing or unknown; send it as Authorization: Bearer KEY")
        return found[0]
