"""Ways to make a second pass: with memory, or without it as a control."""

from .memory import MemorySource
from .retry import RetrySource

__all__ = ["MemorySource", "RetrySource"]
