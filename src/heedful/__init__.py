"""heedful: a control layer for prompt memory.

A model answers first without memory. Memory is consulted only when the model is unsure, and the second
answer replaces the first only if its confidence and the guards allow it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers; `_HOME` lists the same names for run time
    from heedful import arms
    from heedful.adapters.openai_client import wrap_openai
    from heedful.control import Controller
    from heedful.episode import Episode
    from heedful.errors import (
        HeedfulError,
        LeakError,
        LockError,
        LogprobError,
        MalformedError,
        MissingError,
        ModelError,
        PolicyError,
        RequestError,
        SignalError,
        StoreError,
        UsageError,
    )
    from heedful.memory import MemoryBank, SqliteStore, StoredBank
    from heedful.memory.database import Database
    from heedful.memory.entries import new_entry
    from heedful.memory.feedback import SqliteFeedback
    from heedful.memory.formats import read_entries
    from heedful.memory.journal import SqliteJournal
    from heedful.memory.postgres.database import PostgresDatabase
    from heedful.memory.postgres.store import PostgresStore
    from heedful.models.chat import ChatModel
    from heedful.models.embedded import EmbeddedModel
    from heedful.models.scripted import ScriptedModel
    from heedful.rollout.assign import Rollout
    from heedful.sources import MemorySource, RetrySource
    from heedful.stages.guard import ContractGuard
    from heedful.types import Budget, Decode, Entry, Message, Outcome, Policy, Task, Tool

__all__ = [
    "Budget",
    "ChatModel",
    "ContractGuard",
    "Controller",
    "Database",
    "Decode",
    "EmbeddedModel",
    "Entry",
    "Episode",
    "HeedfulError",
    "LeakError",
    "LockError",
    "LogprobError",
    "MalformedError",
    "MemoryBank",
    "MemorySource",
    "Message",
    "MissingError",
    "ModelError",
    "Outcome",
    "Policy",
    "PolicyError",
    "PostgresDatabase",
    "PostgresStore",
    "RequestError",
    "RetrySource",
    "Rollout",
    "ScriptedModel",
    "SignalError",
    "SqliteFeedback",
    "SqliteJournal",
    "SqliteStore",
    "StoreError",
    "StoredBank",
    "Task",
    "Tool",
    "UsageError",
    "arms",
    "new_entry",
    "read_entries",
    "wrap_openai",
]

_HOME = {
    name: module
    for module, names in {
        "heedful.adapters.openai_client": ("wrap_openai",),
        "heedful.control": ("Controller",),
        "heedful.episode": ("Episode",),
        "heedful.errors": (
            *("HeedfulError", "LeakError", "LockError", "LogprobError", "MalformedError", "MissingError"),
            *("ModelError", "PolicyError", "RequestError", "SignalError", "StoreError", "UsageError"),
        ),
        "heedful.memory.bank": ("MemoryBank",),
        "heedful.memory.database": ("Database",),
        "heedful.memory.entries": ("new_entry",),
        "heedful.memory.feedback": ("SqliteFeedback",),
        "heedful.memory.formats": ("read_entries",),
        "heedful.memory.journal": ("SqliteJournal",),
        "heedful.memory.postgres.database": ("PostgresDatabase",),
        "heedful.memory.postgres.store": ("PostgresStore",),
        "heedful.memory.sqlite": ("SqliteStore",),
        "heedful.memory.stored": ("StoredBank",),
        "heedful.models.chat": ("ChatModel",),
        "heedful.models.embedded": ("EmbeddedModel",),
        "heedful.models.scripted": ("ScriptedModel",),
        "heedful.rollout.assign": ("Rollout",),
        "heedful.sources": ("MemorySource", "RetrySource"),
        "heedful.stages.guard": ("ContractGuard",),
        "heedful.types": ("Budget", "Decode", "Entry", "Message", "Outcome", "Policy", "Task", "Tool"),
    }.items()
    for name in names
}


if not TYPE_CHECKING:  # with `__getattr__` a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import an export at first use, to keep `import heedful` fast."""
        if name == "arms":
            return import_module("heedful.arms")
        if name not in _HOME:
            raise AttributeError(f"module 'heedful' has no attribute {name!r}")
        globals()[name] = getattr(import_module(_HOME[name]), name)
        return globals()[name]


def __dir__() -> list[str]:
    return __all__
