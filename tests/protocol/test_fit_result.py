"""What a fit found, as JSON and back."""

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from heedful import UsageError
from heedful.decisions import policy_fields, read_policy
from heedful.protocol.fit_result import (
    BASELINE,
    FitResult,
    HarmCertificate,
    HarmTest,
    HeldOutScore,
    PolicyKind,
    read_fit,
    to_fields,
)
from heedful.protocol.workspace import write_json
from heedful.types import Policy


def test_a_policy_survives_json() -> None:
    policy = Policy(threshold=float("inf"), sources=("a",), margins={"a": 0.1})
    assert read_policy(json.loads(json.dumps(policy_fields(policy)))) == policy


def test_a_fit_survives_json_with_every_policy_in_it(tmp_path: Path) -> None:
    always = Policy(threshold=inf, sources=("bank",), margins={"bank": 0.1})
    score: dict[str, Any] = {"objective": 0.7, "held_out_objective": 0.6, "optimism": 0.1}
    kind = PolicyKind("none", "gate", "mean", ("bank",))
    test = HarmTest(policy=always, objective=0.7, hurts_chosen_on=1, hurts=0, p_value=0.01, certified=True)
    found = FitResult(
        **score,
        policy=Policy(),
        kind=BASELINE,
        leaders=(HeldOutScore(kind=kind, objective=0.6, accuracy=0.7, calls=1.5),),
        certificate=HarmCertificate(limit=0.02, confidence=0.95, chosen_on=40, tested_on=60, path=(test,)),
        unlimited=FitResult(**score, policy=always, kind=kind),
    )
    write_json(tmp_path / "fit.json", to_fields(found))
    assert "Infinity" not in (tmp_path / "fit.json").read_text()
    assert read_fit(tmp_path / "fit.json") == found


@pytest.mark.parametrize("text", ["{}", '{"policy": 3}', '{"policy": {"first": "none"}}'])
def test_a_file_that_is_no_fit_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "fit.json").write_text(text)
    with pytest.raises(UsageError, match=r"fit\.json cannot be read by this version"):
        read_fit(tmp_path / "fit.json")
