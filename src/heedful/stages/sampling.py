"""Samples of a prompt."""

from dataclasses import replace

from heedful.types import Prompt

PER_PROMPT = "per prompt"
"""What the settings of a source that samples say of its seeds."""


def sample_prompt(prompt: Prompt, temperature: float, number: int) -> Prompt:
    """The prompt of one sample of `prompt`; its seed is derived from the whole prompt and the number.

    An engine draws one random number per token from the seed. One seed for all questions would give each of
    them the same numbers, and an unlikely first draw would make the same sample of every question a bad one.
    """
    numbered = replace(prompt, temperature=temperature, seed=number)
    return replace(numbered, seed=int(numbered.digest[:8], 16) >> 1)
