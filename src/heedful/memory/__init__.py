"""Entries, banks, stores and recall."""

from heedful.memory.bank import MemoryBank
from heedful.memory.sqlite import SqliteStore

__all__ = ["MemoryBank", "SqliteStore"]
