import re
from dataclasses import replace

from heedful.dashboard.running_rollout import rollout_sentences
from heedful.types import Assignment, Trial
from tests.dashboard.made_up import made_up

PLAIN = replace(made_up(1, n=9).decision, trial=None)
SHADOW = replace(PLAIN, assignment=Assignment(mode="shadow", arm="first", share=0.0, key="k"))
CANARY = replace(PLAIN, assignment=Assignment(mode="canary", arm="policy", share=0.25, key="k"))
TRIAL = replace(PLAIN, trial=Trial(share=0.005, allowed=True))


def test_the_newest_rollout_and_the_newest_trial_have_a_sentence_each() -> None:
    sentences = [re.sub("<[^>]+>", "", words) for words in rollout_sentences([PLAIN, CANARY, SHADOW, TRIAL])]
    assert [words.partition(" The newest")[0] for words in sentences] == [
        "Rollout, canary: the policy chooses the answers of 25% of the users; the others get the first "
        "answer, without a confidence and without a second pass.",
        "Randomised trial: in 0.5% of the answers a coin decides whether memory may change them.",
    ]
    assert (
        "users get the first answers; the choices of the policy are only recorded"
        in rollout_sentences([SHADOW])[0]
    )


def test_without_rollout_and_trial_there_is_no_sentence() -> None:
    assert rollout_sentences([PLAIN]) == []
