"""How an endpoint's model writes: it stands for weights that cannot be seen."""

from dataclasses import dataclass
from statistics import fmean

from heedful.ports import Model
from heedful.types import Message, Prompt

PROBE = Prompt(messages=(Message(role="user", content="Tell me one thing about the sea."),), max_tokens=8)
PROBE_TOLERANCE = 0.1
"""The same weights on another day differ by less than this in the mean log-prob of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProbe:
    """How an endpoint's model writes: its reply to one question and how sure it was."""

    text: str
    mean: float

    def same(self, other: "EndpointProbe") -> bool:
        return self.text == other.text and abs(self.mean - other.mean) <= PROBE_TOLERANCE


async def probe(model: Model) -> EndpointProbe | None:
    """A reply that stands for an endpoint's weights; None for weights at hand, which their digest tells."""
    if not model.traits.endpoint.startswith("http"):
        return None
    decode = await model.decode(PROBE)
    logprobs = [token.logprob for token in decode.tokens]
    return EndpointProbe(text=decode.text, mean=fmean(logprobs) if logprobs else 0.0)
