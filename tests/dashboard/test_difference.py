import re

from hypothesis import given
from hypothesis import strategies as st

from heedful.dashboard.difference import MOST_WORDS, marked_difference


def test_only_the_words_that_differ_are_marked() -> None:
    before, after = marked_difference("It takes 3 days.", "It takes 30 days.")
    assert before == "It takes <mark>3</mark> days."
    assert after == "It takes <mark>30</mark> days."


@given(st.text(), st.text())
def test_without_the_marks_the_texts_are_unchanged_and_escaped(first: str, second: str) -> None:
    from html import escape

    marked = marked_difference(first, second)
    assert tuple(re.sub("</?mark>", "", text) for text in marked) == (escape(first), escape(second))


def test_very_long_texts_are_shown_without_marks() -> None:
    long = "word " * MOST_WORDS
    assert marked_difference(long, "<b>") == (long, "&lt;b&gt;")
