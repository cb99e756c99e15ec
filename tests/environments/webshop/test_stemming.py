"""Porter's stemmer."""

import pytest

from heedful.environments.webshop.stemming import stem


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("cats", "cat"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("hopping", "hop"),
        ("filing", "file"),
        ("conflated", "conflat"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("triplicate", "triplic"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("controlling", "control"),
        ("sky", "sky"),
        ("is", "is"),
        ("1080p", "1080p"),
    ],
)
def test_a_word_loses_its_endings(word: str, expected: str) -> None:
    assert stem(word) == expected
