"""The trace viewer: two columns, the first parting marked, everything readable and escaped."""

from heedful import arms
from heedful.agents.play import text_digest
from heedful.agents.trace_page import NO_TEXT, TraceReader, first_parting
from tests.agents.making import BLUE_HINT, UNSURE, played


def test_the_first_step_with_different_actions_is_marked() -> None:
    before, after = played(arms.never(), seed=1), played(UNSURE, seed=1)
    assert first_parting(before, after) == 2
    texts = {text_digest("You are in room 2."): "<b>room</b> 2"}
    html = TraceReader(texts, {BLUE_HINT.id: "open & blue"}).episode(before, after)
    left, right = html.split("Here the episodes part")
    assert left.count("go east") == 8
    assert "&lt;b&gt;room&lt;/b&gt; 2" in right
    assert "<b>room</b>" not in html
    assert "open &amp; blue" in right
    assert "accept (margin met)" in right
    assert "0.00 → 1.00" in html
    assert NO_TEXT in left


def test_equal_episodes_have_no_parting_and_a_longer_one_parts_at_its_end() -> None:
    record = played(arms.never(), seed=1)
    assert first_parting(record, record) is None
    shorter = played(arms.never(), seed=1, script=("go east",))
    html = TraceReader({}, {}).episode(record, shorter)
    assert first_parting(record, shorter) == 1
    assert html.count("ended: done") == 1
