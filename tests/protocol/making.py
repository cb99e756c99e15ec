"""A small benchmark, sources and random passes for tests of the protocol."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from hypothesis import strategies as st

from heedful import MemorySource, RequestError, ScriptedModel, Task, new_entry
from heedful.models.scripted import spoken
from heedful.ports import Source
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import Recorder, Recording
from heedful.sources import ReflectSource, RetrySource, VerifySource, VoteSource
from heedful.stages.confidence import SIGNALS
from heedful.stages.value_features import ANSWER_FEATURES, GAIN_FEATURES
from heedful.types import (
    Audience,
    Budget,
    Calibrator,
    Calibrators,
    Decode,
    Entry,
    Item,
    Policy,
    Prompt,
    Recall,
    Side,
    Token,
    TreeEnsemble,
    ValueRule,
    ValueTrees,
)
from tests.making import FixedBank

FREE_SIGNALS = [name for name, signal in SIGNALS.items() if signal.extra_calls == 0]
BANKS = ("one", "two")
World = tuple[ScriptedModel, frozenset[str]]
"""A model, and the questions on which the banks are silent."""


class Letters:
    """Questions q0, q1, …; the right answer is always `a`."""

    name = "letters"

    def __init__(self, n: int = 4, test: int = 4) -> None:
        self.sizes = {"fit": n, "test": test}

    def load(self, data: Path, side: str) -> Sequence[Item]:
        return [Item(id=f"{side}{i}", question=f"{side} q{i}?", answer="a") for i in range(self.sizes[side])]

    def task(self, item: Item) -> Task:
        return Task(id=item.id, question=item.question, choices=("a", "b", "c"))

    def grade(self, answer: str, item: Item) -> bool:
        return answer == item.answer

    def exemplar(self, item: Item) -> Entry | None:
        return new_entry(item.question, kind="exemplar", response=item.answer, id=item.id)


class PickyBank(FixedBank):
    """Recalls nothing for the questions it is told to be silent on."""

    def __init__(self, entries: Sequence[Entry], silent: frozenset[str]) -> None:
        super().__init__(entries)
        self.silent = silent

    async def recall(self, query: str, *, limit: int, audience: Audience | None = None) -> Sequence[Recall]:
        return () if query in self.silent else await super().recall(query, limit=limit, audience=audience)


def sources(silent: frozenset[str] = frozenset()) -> dict[str, Source]:
    banks = {
        name: MemorySource(bank=PickyBank([new_entry(f"note {name}", kind="rule", id=name)], silent))
        for name in BANKS
    }
    controls: dict[str, Source] = {
        "retry": RetrySource(),
        "reflect": ReflectSource(),
        "vote": VoteSource(),
        "verify": VerifySource(),
    }
    return {"none": RetrySource(), **banks, **controls}


def source_of(prompt: Prompt) -> str:
    last = prompt.messages[-1].content
    if prompt.temperature:
        return f"sample {(prompt.seed or 0) % 3}"
    if any(message.role == "assistant" for message in prompt.messages):
        return "check" if prompt.max_tokens == 2 else "reflection"
    return next((name for name in BANKS if f"note {name}" in last), "none")


def question_of(prompt: Prompt) -> str:
    asked = next(m for m in prompt.messages if m.role == "user")
    return asked.content.partition("\n")[0]


@st.composite
def decodes(draw: st.DrawFn) -> Decode:
    text = draw(st.sampled_from(["a", "b", "c", "d", "a.", "", "a b"]))
    if not text or draw(st.integers(0, 9)) == 0:  # now and then an endpoint gives no log-probs
        return Decode(text=text)
    logprob = draw(st.sampled_from([-2.0, -1.0, -0.5, -0.25, -0.125]))
    return Decode(
        text=text, tokens=(*spoken(text, logprob), Token("", logprob / 2, (("", -0.1), ("x", -3.0))))
    )


@st.composite
def worlds(draw: st.DrawFn, n: int = 3) -> World:
    """A scripted model for `n` tasks and every kind of pass, and where the banks are silent."""
    questions = [f"fit q{i}?" for i in range(n)]
    passes = ("none", *BANKS, "reflection", "sample 0", "sample 1", "sample 2")
    refused = st.just(RequestError("too long"))  # by a second pass only: without a first there is no answer
    replies = {s: decodes() if s == "none" else st.one_of(decodes(), decodes(), refused) for s in passes}
    script = {(q, s): draw(replies[s]) for q in questions for s in passes}
    script |= {(q, "check"): Decode(text=draw(st.sampled_from(["yes", "no"]))) for q in questions}
    silent = frozenset(draw(st.lists(st.sampled_from(questions), max_size=1)))
    model = ScriptedModel(script=lambda prompt: script[question_of(prompt), source_of(prompt)])
    return model, silent


@st.composite
def calibrators(draw: st.DrawFn, sources: Sequence[str]) -> Calibrators | None:
    if draw(st.booleans()):
        return None
    weight = st.floats(-2, 2)

    def calibrator() -> Calibrator:
        return Calibrator(
            features=("mean", "agreement"),
            weights=(draw(weight), draw(weight)),
            bias=draw(weight),
            means=(-0.5, 0.5),
            scales=(1.0, 0.5),
        )

    return Calibrators(first=calibrator(), sources={source: calibrator() for source in sources})


@st.composite
def trees(draw: st.DrawFn, features: tuple[str, ...], leaf: float) -> TreeEnsemble:
    """A few stumps over random features."""
    roots: list[int] = []
    nodes: list[tuple[int, float, int, int, float]] = []
    for _ in range(draw(st.integers(1, 4))):
        at = len(nodes)
        roots.append(at)
        splits_at = draw(st.sampled_from([-5000.0, -1.0, -0.4, 0.3, 0.5, 0.6, 1.5]))
        nodes.append((draw(st.integers(0, len(features) - 1)), splits_at, at + 1, at + 2, 0.0))
        nodes += [(-1, 0.0, 0, 0, draw(st.floats(-leaf, leaf))) for _ in range(2)]
    feature, threshold, left, right, value = (tuple(part) for part in zip(*nodes, strict=True))
    return TreeEnsemble(
        features=features,
        roots=tuple(roots),
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        value=value,
    )


def spelled_alike(one: str, other: str) -> float:
    """A similarity of texts that needs no model."""
    return SequenceMatcher(None, one, other).ratio()


@st.composite
def value_policies(draw: st.DrawFn) -> Policy:
    chains = [("one",), ("two", "one"), ("one", "two", "retry"), ("two", "none"), ("one", "vote")]
    first = draw(st.sampled_from(["none", "one"]))
    chain = draw(st.sampled_from([*chains, *([("verify", "one", "reflect")] if first == "none" else [])]))
    prior, own = (
        ValueTrees(
            answer=draw(trees(ANSWER_FEATURES, 2.0)),
            gain=draw(trees(GAIN_FEATURES, 0.1)),
            by_source=by_source,
        )
        for by_source in (False, True)
    )
    rule = ValueRule(
        trees=draw(st.sampled_from([prior, own, replace(own, prior=prior)])),
        unit=draw(st.sampled_from(["calls", "tokens"])),
        costs=tuple(draw(st.sampled_from([1.0, 3.0])) for _ in chain),
        cost=draw(st.sampled_from([0.0, 0.01, 0.05])),
        margin=draw(st.sampled_from([0.0, 0.1, 0.4])),
    )
    return Policy(
        first=first,
        sources=chain,
        combine="value",
        value=rule,
        guards=draw(st.sampled_from([(), ("format",), ("format", "valid")])),
        budget=Budget(passes=draw(st.sampled_from([None, 0, 1, 2]))),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    chains = [(), ("one",), ("two", "one"), ("one", "two", "retry"), ("none",), ("two", "none"), ("retry",)]
    chains += [("vote",), ("one", "vote")]
    first = draw(st.sampled_from(["none", "one"]))
    if first == "none":  # what these criticise is the memory-free answer
        chains += [("reflect",), ("verify",), ("one", "reflect"), ("verify", "vote", "two")]
    chain = draw(st.sampled_from(chains))
    margin = st.sampled_from([-1.0, -0.25, 0.0, 0.25, 1.0])
    return Policy(
        first=first,
        signal=draw(st.sampled_from(FREE_SIGNALS)),
        threshold=draw(st.sampled_from([float("-inf"), -1.0, -0.5, -0.3, 0.2, 0.7, float("inf")])),
        sources=chain,
        combine=draw(st.sampled_from(["cascade", "dual", "agree"])),
        margins=draw(st.one_of(st.none(), st.fixed_dictionaries(dict.fromkeys(chain, margin)))),
        guards=draw(st.sampled_from([(), ("format",), ("format", "valid")])),
        budget=Budget(passes=draw(st.sampled_from([None, 0, 1, 2]))),
        calibrators=draw(calibrators(chain)),
    )


def recorded(
    path: Path,
    model: ScriptedModel,
    kept: dict[str, Source],
    n: int,
    side: Side = "fit",
    *,
    retry_failed: bool = False,
    signals: tuple[str, ...] = (),
) -> Ledger:
    benchmark = Letters(n, n)
    recording = Recording(
        side=side,
        items=benchmark.load(path, side),
        sources={0: kept},
        benchmark=benchmark,
        retry_failed=retry_failed,
        signals=signals,
        measured=frozenset(kept),
    )
    ledger = Ledger(path)
    with ledger:
        asyncio.run(Recorder(recording, model, ledger, lambda progress: None).run(2))
    return ledger
