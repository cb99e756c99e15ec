"""The file of callers' keys."""

import json
import re
from collections import Counter
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import structs

from heedful.errors import UsageError
from heedful.serve.callers import ANY, Caller, CallerKey, Rights
from heedful.types import CALLER

_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[key]]` table."""

    name: str
    sha256: str
    policies: tuple[str, ...] = (ANY,)
    banks: tuple[str, ...] = (ANY,)
    scopes: tuple[str, ...] = ()
    admin: bool = False
    at_once: Annotated[int, msgspec.Meta(ge=1)] | None = None


class KeyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of `[[key]]` tables."""

    key: tuple[KeyEntry, ...] = ()


def read_keys(file: Path) -> tuple[CallerKey, ...]:
    """The keys in a TOML file; several keys may have one name, so that a key can be replaced."""
    try:
        entries = msgspec.toml.decode(file.read_bytes(), type=KeyFile).key
    except OSError as error:
        raise UsageError(f"cannot read the keys {file}: {error.strerror}; correct --keys") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not a file of keys ({error}); heedful key new prints a table") from error
    for entry in entries:
        refuse_entry(str(file), entry)
    twice = [hash for hash, count in Counter(entry.sha256 for entry in entries).items() if count > 1]
    if twice or not entries:
        problem = f"the hash {twice[0][:8]}… occurs twice" if twice else "there is no key"
        raise UsageError(f"{file}: {problem}; heedful key new prints a table")
    return tuple(CallerKey(hash=entry.sha256, caller=_caller(entry)) for entry in entries)


def key_table(entry: KeyEntry) -> str:
    """The table of a key, to be added to the file."""
    fields = {name: value for name, value in structs.asdict(entry).items() if value is not None}
    # strings, lists and truth values are written alike in JSON and TOML
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(["[[key]]", *lines])


def refuse_entry(file: str, entry: KeyEntry) -> None:
    """Refuse a key whose name, hash or rights are unusable."""
    if not _NAME.fullmatch(entry.name):
        raise UsageError(f"{file}: the name {entry.name!r} is not usable; use letters, digits, . _ and -")
    if not _HASH.fullmatch(entry.sha256):
        raise UsageError(f"{file}: sha256 of {entry.name!r} is not a sha256; heedful key new prints one")
    for kind, names in (("policy", entry.policies), ("bank", entry.banks)):
        if not all(name.strip() for name in names):
            raise UsageError(f"{file}: a {kind} of {entry.name!r} has an empty name; correct or remove it")
    for scope in entry.scopes:
        _refuse_scope(file, entry.name, scope)


def unserved_rights(keys: Sequence[CallerKey], *, policies: Set[str], banks: Set[str]) -> list[str]:
    """One sentence for each policy and bank that a key names but the server does not serve."""
    lines = []
    for caller in (key.caller for key in keys):
        for kind, named, served in (
            ("policy", caller.rights.policies, policies),
            ("bank", caller.rights.banks, banks),
        ):
            lines += [
                f"the key of {caller.name} names the {kind} {name}, which is not served; served: "
                f"{', '.join(sorted(served)) or 'none'}"
                for name in named
                if name != ANY and name not in served
            ]
    return list(dict.fromkeys(lines))


def _refuse_scope(file: str, name: str, scope: str) -> None:
    key, equals, value = scope.partition("=")
    if scope != ANY and not (key.strip() and equals and value.strip()):
        raise UsageError(f"{file}: the scope {scope!r} of {name!r} is not KEY=VALUE or KEY=*")
    if key.strip() == CALLER:
        raise UsageError(
            f"{file}: the scope {scope!r} of {name!r} has no effect, because the server sets {CALLER} to the "
            "key's name; leave it out"
        )


def _caller(entry: KeyEntry) -> Caller:
    rights = Rights(
        policies=entry.policies,
        banks=entry.banks,
        scopes=entry.scopes,
        admin=entry.admin,
        at_once=entry.at_once,
    )
    return Caller(name=entry.name, rights=rights)
