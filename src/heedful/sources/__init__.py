"""The sources of second passes: with memory, or without it as controls."""

from heedful.sources.memory import MemorySource
from heedful.sources.reflect import ReflectSource
from heedful.sources.retry import RetrySource
from heedful.sources.verify import VerifySource
from heedful.sources.vote import VoteSource

__all__ = ["MemorySource", "ReflectSource", "RetrySource", "VerifySource", "VoteSource"]
