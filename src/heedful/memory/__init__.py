"""Entries, banks, stores and recall."""

from heedful.memory.bank import MemoryBank
from heedful.memory.likeness import answer_similarity
from heedful.memory.sqlite import SqliteStore
from heedful.memory.stored import StoredBank

__all__ = ["MemoryBank", "SqliteStore", "StoredBank", "answer_similarity"]
