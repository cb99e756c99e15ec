from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.sampling import sample_prompt
from heedful.types import Message, Prompt


def asked(question: str) -> Prompt:
    return Prompt(messages=(Message(role="user", content=question),))


def test_each_question_and_each_number_has_a_seed_of_its_own() -> None:
    prompts = [sample_prompt(asked(f"{n}?"), 0.7, number) for n in range(200) for number in (1, 2)]
    assert len({prompt.seed for prompt in prompts}) == len(prompts)


@given(st.text(), st.floats(0.1, 2), st.integers(0, 5000))
def test_a_sample_repeats_itself_and_changes_nothing_but_temperature_and_seed(
    question: str, temperature: float, number: int
) -> None:
    prompt = sample_prompt(asked(question), temperature, number)
    assert prompt == sample_prompt(asked(question), temperature, number)
    assert prompt == sample_prompt(prompt, temperature, number)
    assert replace(prompt, temperature=0.0, seed=None) == asked(question)
    assert prompt.seed is not None
    assert 0 <= prompt.seed < 2**31
