"""What the measuring model really wrote on word problems, and what a person says of it."""

import pytest

from heedful.benchmarks import BENCHMARKS
from heedful.stages.answer import read_answer
from heedful.types import Choice, Decode, Item

REAL_OUTPUTS = [
    ("53 * 41 = 2173. Answer: 2173", "2173", True),
    ("3 / 2 = 1.5. Answer: 1.5", "2", False),
    ("(24 - 3) - 9 = 12. Answer: 12", "12", True),
    ("300 - 359 = -59. Answer: -59", "59", False),
    (
        "Therefore, 8 - 23 = -15 more children got off the bus than those that got on. Answer: -15",
        "15",
        False,
    ),
    ("Dan bought 2 candy bars for $4, so each candy bar cost $4 ÷ 2 = $2. Answer: $2", "2", True),
    ("Dan spent $ 4 on 2 candy bars, so each candy bar cost $ 4 / 2 = $ 2.", "2", True),
    ("Edward spent $ 4 + $ 3 = $ 7 on books and pens. Answer: 7", "7", True),
    ("Edward spent $ 4 on books and $ 3 on pens.", "7", False),
    ("Therefore, each aquarium has 52/26 = 2 saltwater animals.", "2", True),
    ("Debby drank 153 / 17 = 9 bottles each day.", "9", True),
    ("If you had 53 bags of cookies, you would have 2,193 cookies.", "2193", True),
    ("Answer: 79 * (109 + 82) = 14,001", "15089", False),
    ("Over 79 games, she scored 109 * 79 + 82 * 79 points. Answer: 109 * 79 + 82 * 79", "15089", False),
    ("Paul sold 29 pens in the garage sale.", "23", False),
    ("Marco's strawberries weighed 3 pounds.", "3", True),
    ("There are 85 - 23 - 37 = 25 bird families left near the mountain.", "25", True),
    ("Line 1: 85 - 23 - 37 = 25 bird families were left near the mountain.\n\nLine 2: 25", "25", True),
    ("So, the number of animals not hiding in the cage is \\(\\boxed{4}\\).", "4", True),
    ("\\[ 12 + 13 = 25 \\]\n\nTherefore, Jake has \\(\\boxed{25}\\) apples.", "25", True),
    ("We need to divide the total amount of money by the number of packs.", "14", False),
    (
        "To find the cost, we divide: $ 28 \\div 2 = $ 14. Therefore, each pack costs $ 14. Answer: 14",
        "14",
        True,
    ),
    ("There are 15 - 40 = -25 more books than movies in the series.", "1", False),
    ("Answer: 1.50", "1.5", True),
    ("24 - 8 = 16", "15", False),
    ("", "7", False),
]


@pytest.mark.parametrize(("text", "target", "verdict"), REAL_OUTPUTS)
@pytest.mark.parametrize("name", ["svamp", "asdiv", "multiarith", "aime24"])
def test_the_grader_agrees_with_a_person(name: str, text: str, target: str, verdict: bool) -> None:
    assert graded(name, text, target) is verdict


def graded(name: str, text: str, target: str) -> bool:
    benchmark = BENCHMARKS[name]
    item = Item(id="1", question="How many?", answer=target)
    answer = read_answer(Decode(text=text), benchmark.task(item)).answer
    return benchmark.grade(answer, item)


REAL_CHOICES = [
    ("D", "C", False),
    ("D", "D", True),
    ("Answer: C", "C", True),
    ("Answer: C", "D", False),
    ("Answer: B", "B", True),
    ("A", "A", True),
    ("Answer: D", "A", False),
]
"""Without memory and with notes, the measuring model wrote nothing else on 54 questions."""


@pytest.mark.parametrize(("text", "target", "verdict"), REAL_CHOICES)
@pytest.mark.parametrize("name", ["openbookqa", "arc_easy", "arc_challenge"])
def test_the_grader_of_choices_agrees_with_a_person(name: str, text: str, target: str, verdict: bool) -> None:
    benchmark = BENCHMARKS[name]
    choices = tuple(Choice(label=label, text=f"thing {label}") for label in "ABCD")
    item = Item(id="1", question="Which?", answer=target, choices=choices)
    answer = read_answer(Decode(text=text), benchmark.task(item)).answer
    assert benchmark.grade(answer, item) is verdict


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Answer: 1 1/2", "1.5"),
        ("Half of 3 is 3 / 2. Answer: 3 / 2", "1.5"),
        ("Answer: seven", "7"),
        ("Each one gets more than one. Answer: Seven.", "7"),
        ("It falls by a half. Answer: -.5", "-0.5"),
        ("Answer: $-5", "-5"),
        ("Answer: -$5", "-5"),
        ("12 - 5 leaves 7 for each one", "7"),
        ("so 20 - 13", "13"),
    ],
)
def test_numbers_are_found_in_their_usual_spellings(text: str, target: str) -> None:
    assert graded("svamp", text, target)


def test_the_last_number_counts_even_where_a_person_would_take_an_earlier_one() -> None:
    """The known limit of the rule: 5 groups of 4 is read as 4."""
    item = Item(id="1", question="How many groups?", answer="5")
    said = Decode(text="Rebecca can create 5 groups of 4 marbles each.")
    benchmark = BENCHMARKS["svamp"]
    assert read_answer(said, benchmark.task(item)).answer == "4"
