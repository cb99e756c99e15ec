"""A probe of an endpoint's model: it stands in for weights that cannot be hashed."""

from dataclasses import dataclass
from statistics import fmean

from heedful.ports import Model
from heedful.types import Message, Prompt

PROBE = Prompt(messages=(Message(role="user", content="Tell me one thing about the sea."),), max_tokens=8)
PROBE_TOLERANCE = 0.1
"""With the same weights, the mean log-prob of the reply varies by less than this between days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProbe:
    """An endpoint's reply to a fixed question, and its mean log-prob."""

    text: str
    mean: float

    def same(self, other: "EndpointProbe") -> bool:
        return self.text == other.text and abs(self.mean - other.mean) <= PROBE_TOLERANCE


async def probe(model: Model) -> EndpointProbe | None:
    """A reply that stands in for an endpoint's weights; None for local weights, which have a digest."""
    if not model.traits.endpoint.startswith("http"):
        return None
    decode = await model.decode(PROBE)
    logprobs = [token.logprob for token in decode.tokens]
    return EndpointProbe(text=decode.text, mean=fmean(logprobs) if logprobs else 0.0)
