import pytest

from heedful import arms
from heedful.credit import AnswerWithout
from heedful.decisions import decision_of
from heedful.explain import without_lines
from tests.test_feedback import decide


@pytest.mark.parametrize(
    ("margin", "subject"), [(0.0, "the answer depends on"), (9.0, "the rejected memory answer depends on")]
)
def test_leave_one_out_says_which_answer_it_is_about(margin: float, subject: str) -> None:
    policy = arms.choose("notes", float("inf"), margin)
    decision = decision_of(decide(policy=policy), at=1.0)
    lines = without_lines(decision, [AnswerWithout(entry="sky", answer="blue", flipped=True)])
    assert lines[-1] == f"{subject} sky"
    assert ("rejected" in lines[0]) == (margin > 0)
