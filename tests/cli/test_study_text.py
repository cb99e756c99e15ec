"""A fit in words."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as with_settings

from heedful.cli.study_text import fitted_lines
from heedful.protocol.fit_result import FamilyFit, FitResult
from heedful.protocol.harm import fit_within_limit
from tests.protocol.worlds import SMALL, world


@pytest.fixture(scope="module")
def fitted() -> FitResult:
    rows = world(np.random.default_rng(7), 400, help_rate=0.4, hurt_rate=0.01, telling=0.3)
    return fit_within_limit(rows, ["bank"], with_settings(SMALL, harm_limit=0.05))


def test_the_limits_that_would_be_certified_are_listed_and_the_own_one_is_marked(fitted: FitResult) -> None:
    lines = fitted_lines(fitted)
    start = next(at for at, line in enumerate(lines) if "each is another look" in line)
    listed = lines[start + 1 : start + 5]
    assert [line.split()[0] for line in listed] == ["1%", "2%", "3%", "5%"]
    assert [line.endswith("(this study)") for line in listed] == [False, False, False, True]
    assert "no policy" in listed[0], "240 rows cannot certify 1%"
    assert "points" in listed[3]
    assert "hurts of 240" in listed[3]


def test_the_rows_that_chose_and_certified_are_told(fitted: FitResult) -> None:
    text = "\n".join(fitted_lines(fitted))
    assert "harm limit 5.0% at 95% confidence, ladder thresholds" in text
    assert "(chosen on 160 questions, tested on 240 others)" in text


def test_both_families_are_named_where_both_were_fitted(fitted: FitResult) -> None:
    other = FamilyFit(policy=fitted.policy, kind=fitted.kind)
    text = "\n".join(fitted_lines(replace(fitted, families={**fitted.families, "value": other})))
    assert "\n  threshold  " in text
    assert "\n  value      " in text
    assert "by family" not in "\n".join(fitted_lines(fitted)), "one family needs no comparison"


def test_a_policy_that_no_row_tuned_has_no_optimism(fitted: FitResult) -> None:
    assert fitted.tuned
    assert "(optimism " in "\n".join(fitted_lines(fitted))
    rows = world(np.random.default_rng(7), 60, help_rate=0.4, hurt_rate=0.3, telling=0.0)
    baseline = fit_within_limit(rows, ["bank"], with_settings(SMALL, harm_limit=0.001))
    assert (baseline.tuned, baseline.optimism) == (False, 0.0)
    assert baseline.objective == baseline.held_out_objective
    assert fitted.certificate is not None
    prior = replace(fitted, certificate=replace(fitted.certificate, chosen_on=0, ladder="prior"))
    for untuned in (baseline, prior):
        text = "\n".join(fitted_lines(untuned))
        assert "not tuned on any row of the study" in text
        assert f"objective {untuned.held_out_objective:.4f} on the rows that compare" in text
        assert "optimism" not in text
