"""Acceptance is the only way a candidate becomes the answer."""

from dataclasses import dataclass
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from heedful import Controller, MemorySource, ModelError, ScriptedModel, Task, new_entry
from heedful.models.scripted import Reply
from heedful.ports import Journal
from heedful.stages.confidence import SIGNALS
from heedful.types import Budget, Decode, Outcome, Policy, Prompt, Token
from tests.making import FixedBank

NAMES = ("one", "two")
texts = st.text(alphabet="ab 1é\n", max_size=6)
logprobs = st.one_of(st.floats(-5, 0), st.sampled_from([0.0, -1001.0, float("nan"), float("-inf"), 3.0]))
faults = st.sampled_from([ModelError("down"), ValueError("odd"), RuntimeError("broken"), KeyError("gone")])


@st.composite
def decodes(draw: st.DrawFn) -> Decode:
    text = draw(texts)
    shown = draw(st.one_of(st.just(text), texts))
    tokens = tuple(Token(char, draw(logprobs), ((char, -0.1), ("x", -0.9))) for char in shown)
    return Decode(text=text, tokens=tokens, model="random")


replies = st.one_of(decodes(), decodes(), decodes(), faults)


@dataclass
class RandomGuard:
    says: str | Exception | None

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    sources = draw(st.sampled_from([(), ("one",), ("two", "one"), ("one", "retry"), ("one", "two", "none")]))
    some_margins = st.floats(-2, 2)
    margins = draw(st.one_of(st.none(), st.fixed_dictionaries(dict.fromkeys(sources, some_margins))))
    return Policy(
        first=draw(st.sampled_from(["none", "one"])),
        signal=draw(st.sampled_from(list(SIGNALS))),
        threshold=draw(st.one_of(st.floats(-3, 1), st.sampled_from([float("inf"), float("-inf")]))),
        sources=sources,
        combine=draw(st.sampled_from(["cascade", "dual"])),
        margins=margins,
        guards=draw(st.sampled_from([(), ("format",), ("format", "odd")])),
        budget=Budget(passes=draw(st.sampled_from([None, 0, 1, 2]))),
    )


class BrokenJournal:
    def record(self, outcome: Outcome) -> None:
        raise OSError("the disk is full")


@given(data=st.data(), policy=policies(), guard=st.sampled_from([None, "odd:no", ValueError("guard")]))
def test_the_answer_is_the_baselines_or_an_accepted_candidates(
    data: st.DataObject, policy: Policy, guard: str | Exception | None
) -> None:
    first_reply = data.draw(decodes())
    asked: list[Prompt] = []

    def script(prompt: Prompt) -> Reply:
        asked.append(prompt)
        return first_reply if len(asked) == 1 else data.draw(replies)

    entry = new_entry("A note.", kind="rule", id="note")
    banks = {name: FixedBank([entry], data.draw(st.one_of(st.none(), faults))) for name in NAMES}
    controller = Controller(
        model=ScriptedModel(script=script),
        policy=policy,
        sources={name: MemorySource(bank=bank) for name, bank in banks.items()},
        guards={"odd": RandomGuard(guard)},
        journal=data.draw(st.sampled_from([None, cast(Journal, BrokenJournal())])),
    )
    outcome = controller.answer_sync(Task(question="?"))

    accepted = [c for c in outcome.candidates if c.verdict.choice == "accept"]
    if outcome.chosen is None:
        assert accepted == []
        assert outcome.answer == outcome.baseline.decode.answer == first_reply.text.strip()
    else:
        chosen = outcome.candidates[outcome.chosen]
        assert chosen in accepted
        assert outcome.answer == chosen.attempt.decode.answer
        assert not any(chosen.attempt.guards[guard] for guard in policy.guards)
        assert outcome.route.choice == "consult"
        if policy.margins is not None:
            assert chosen.confidence is not None
            assert outcome.confidence is not None
            assert chosen.confidence >= outcome.confidence + policy.margins[chosen.attempt.source]
    assert outcome.calls == len(asked)
    assert (outcome.verdict is None) == (outcome.route.choice == "keep")
