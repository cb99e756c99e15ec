"""Sentence embeddings by all-MiniLM-L6-v2, computed with NumPy alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched, groupby
