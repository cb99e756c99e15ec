"""The probe sees what an endpoint gives, for endpoints that each lack something."""

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

import pytest

from heedful import ChatModel, MissingError, ModelError
from heedful.models.probe import Probe, check_fields, probe
from heedful.stages.confidence import SIGNALS
from tests.faulty import (
    FaultyServer,
    Play,
    Request,
    completion,
    fails,
    hangs_up,
    in_turn,
    sends,
    words,
)

OWN_QUESTIONS = ("agreement", "ptrue", "stated")
"""Signals that need no log-probs."""


@dataclass(kw_only=True)
class Endpoint:
    """A well-behaved endpoint, but for what is set."""

    logprobs: bool = True
    accepts_logprobs: bool = True
    most_top: int = 20
    hottest: float = 2.0
    longest: int = 100_000
    """Characters of a question that fit its context."""
    drift: Iterator[float] = field(default_factory=lambda: cycle([0.0]))
    """What is added to the log-probs of each answer."""
    zero: bool = False
    scaled: bool = False
    caches: bool = False
    keeps_schema: bool = True
    rejects: tuple[str, ...] = ()
    texts: Iterator[str] = field(default_factory=lambda: cycle(["red and blue"]))
    seen: set[str] = field(default_factory=set)

    def __call__(self, request: Request) -> Play:
        asked = {"temperature": 1.0, **request.body}
        for name in self.rejects:
            if name in request.body:
                return fails(400, f"Unsupported parameter: '{name}'")
        top = asked.get("top_logprobs", 0)
        if top > self.most_top or (asked.get("logprobs") and not self.accepts_logprobs):
            return fails(400, "top_logprobs is too large")
        if asked["temperature"] > self.hottest:
            return fails(400, "temperature is too high")
        if len(request.question) > self.longest:
            return fails(400, "the context is too long")
        text = next(self.texts)
        if "response_format" in asked:
            text = '{"colour": "red"}' if self.keeps_schema else "red, I would say"
        wanted = self.logprobs and asked.get("logprobs")
        pieces = words(text, self.logprob(asked["temperature"])) if wanted else None
        return sends(completion(text, pieces, top=top, cached=self.cached(request)))

    def logprob(self, temperature: float) -> float:
        if self.zero:
            return 0.0
        return next(self.drift) - (0.5 / (temperature or 1.0) if self.scaled else 0.5)

    def cached(self, request: Request) -> int | None:
        """How many tokens of the question's beginning were asked before; None: it does not tell."""
        if not self.caches:
            return None
        opening = request.question[:200]
        known = len(opening) // 4 if opening in self.seen else 0
        self.seen.add(opening)
        return known


async def no_wait(seconds: float) -> None:
    """Stands in for sleeping."""


def probed(endpoint: Endpoint) -> Probe:
    with FaultyServer(endpoint) as server:
        found = asyncio.run(probe(ChatModel(base_url=server.url, model="m", sleep=no_wait)))
        gc.collect()  # pytest turns what is left open into an error
    assert (found.endpoint, found.model) == (server.url, "m")
    return found


def test_a_well_behaved_endpoint_allows_every_signal() -> None:
    found = probed(Endpoint())
    assert (found.logprobs, found.logprob_problem, found.top_logprobs) == ("raw", "", 20)
    assert (found.deterministic_text, found.logprob_drift) == (True, 0.0)
    assert (found.json_schema, found.cached_tokens) == (True, None)
    assert found.signals == tuple(SIGNALS)


@pytest.mark.parametrize(
    "endpoint", [Endpoint(logprobs=False), Endpoint(accepts_logprobs=False)], ids=["leaves out", "refuses"]
)
def test_an_endpoint_without_logprobs_allows_only_signals_that_ask_their_own_questions(
    endpoint: Endpoint,
) -> None:
    found = probed(endpoint)
    assert (found.logprobs, found.logprob_problem, found.top_logprobs) == ("none", "", 0)
    assert found.logprob_drift is None
    assert found.deterministic_text
    assert found.signals == OWN_QUESTIONS


@pytest.mark.parametrize("most", [5, 3, 2, 1])
def test_an_endpoint_that_refuses_many_alternatives_is_asked_for_fewer(most: int) -> None:
    found = probed(Endpoint(most_top=most))
    assert found.logprobs == "raw"
    assert found.top_logprobs == {5: 5, 3: 2, 2: 2, 1: 1}[most]
    assert ("margin" in found.signals) == (most > 1)


def test_an_endpoint_whose_logprobs_are_all_zero_cannot_be_used_for_them() -> None:
    found = probed(Endpoint(zero=True))
    assert (found.logprobs, found.top_logprobs, found.logprob_drift) == ("unusable", 0, None)
    assert "all 0" in found.logprob_problem
    assert found.signals == OWN_QUESTIONS


def test_logprobs_that_move_with_the_temperature_are_told_apart() -> None:
    found = probed(Endpoint(scaled=True))
    assert found.logprobs == "after temperature"
    assert "mean" in found.signals


@pytest.mark.parametrize("scaled", [False, True])
def test_an_endpoint_that_refuses_a_high_temperature_can_be_probed(scaled: bool) -> None:
    found = probed(Endpoint(hottest=1.0, scaled=scaled))
    assert found.logprobs == ("after temperature" if scaled else "raw")


def test_cached_tokens_are_those_of_the_second_request_with_one_prefix() -> None:
    assert probed(Endpoint(caches=True)).cached_tokens == 50


def test_an_endpoint_with_a_short_context_can_be_probed() -> None:
    found = probed(Endpoint(longest=100, caches=True))
    assert (found.logprobs, found.cached_tokens) == ("raw", None)


def test_an_endpoint_that_does_not_keep_a_schema_is_told_so() -> None:
    assert not probed(Endpoint(keeps_schema=False)).json_schema


def test_an_endpoint_that_changes_its_mind_is_not_repeatable() -> None:
    found = probed(Endpoint(texts=cycle(["red", "green", "blue"])))
    assert not found.deterministic_text
    assert found.logprob_drift is None


def test_a_drift_between_equal_requests_is_measured() -> None:
    assert probed(Endpoint(drift=cycle([0.0, 0.125]))).logprob_drift == 0.125


def test_an_endpoint_that_is_down_is_the_callers_error() -> None:
    with FaultyServer(in_turn(hangs_up)) as server, pytest.raises(ModelError, match="tried 1 times"):
        asyncio.run(probe(ChatModel(base_url=server.url, retries=0, sleep=no_wait)))


def test_a_refused_key_is_told_at_once() -> None:
    with FaultyServer(in_turn(fails(401))) as server, pytest.raises(MissingError, match="OPENAI_API_KEY"):
        asyncio.run(probe(ChatModel(base_url=server.url, sleep=no_wait)))
    assert len(server.requests) == 1


def test_fields_that_a_reasoning_model_rejects_are_reported_and_left_out() -> None:
    found = probed(Endpoint(rejects=("max_tokens", "temperature"), accepts_logprobs=False))
    assert found.rejects == ("logprobs", "max_tokens", "temperature")
    assert found.signals == OWN_QUESTIONS
    assert probed(Endpoint()).rejects == ()


@pytest.mark.parametrize("endpoint", [Endpoint(logprobs=False), Endpoint(accepts_logprobs=False)])
def test_one_question_shows_that_an_endpoint_has_no_logprobs(endpoint: Endpoint) -> None:
    with FaultyServer(endpoint) as server:
        model = ChatModel(base_url=server.url, sleep=no_wait)
        assert "logprobs" in asyncio.run(check_fields(model))
        gc.collect()
