"""heedful: a control layer for prompt memory.

A model answers first without memory; only when it is unsure is memory consulted, and the second
answer replaces the first only if confidence and guards say so.
"""

from heedful import arms
from heedful.control import Controller, Episode
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
    StoreError,
    UsageError,
)
from heedful.memory import MemoryBank, SqliteStore, StoredBank
from heedful.memory.database import Database
from heedful.memory.entries import new_entry
from heedful.memory.formats import read_entries
from heedful.memory.journal import SqliteJournal
from heedful.models.chat import ChatModel
from heedful.models.embedded import EmbeddedModel
from heedful.models.scripted import ScriptedModel
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
    "RequestError",
    "RetrySource",
    "ScriptedModel",
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
]
