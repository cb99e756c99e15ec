import pytest

from heedful.dashboard.decision_steps import ABSENT, effect_words
from heedful.stages.value_features import ANSWER_FEATURES, MISSING
from heedful.types import FeatureEffect


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        (
            "friend_mean",
            MISSING,
            "-1.01 no other pass with log-probs agrees "
            "(missing: the mean log-prob of the surest pass that agrees)",
        ),
        ("friend_mean", -0.25, "-1.01 the mean log-prob of the surest pass that agrees: -0.25"),
        ("recall", MISSING, "-1.01 nothing was recalled (missing: the best recall score)"),
        ("ptrue", MISSING, "-1.01 the model's yes when asked whether it is right: not available"),
    ],
)
def test_a_missing_feature_says_why_it_is_missing(feature: str, value: float, words: str) -> None:
    assert effect_words(FeatureEffect(feature=feature, value=value, effect=-1.01)) == words


def test_every_explained_absence_is_that_of_a_feature() -> None:
    assert set(ABSENT) <= {feature.partition("_")[0] for feature in ANSWER_FEATURES}
