"""Which rows are evidence for an entry."""

from heedful import Policy
from heedful.experiments.study_evidence import table_evidence
from heedful.protocol.ledger import Pass, Seen
from heedful.protocol.table import Table, make_column


def passes(source, answers):
    """Passes of one source that recalled one entry; `a` is right, and the first pass is unsure."""
    return make_column(
        [
            Pass(
                side="fit",
                seed=0,
                source=source,
                task=f"t{at}",
                prompt="",
                model="",
                status="decoded",
                answer=answer,
                right=answer == "a",
                signals={"mean": -1.0},
                recalls=() if source == "none" else (Seen(entry=f"of {source}", version="1", score=1.0),),
                calls=1,
            )
            for at, answer in enumerate(answers)
        ]
    )


TABLE = Table(
    tasks=("t0", "t1", "t2", "t3"),
    seeds=(0, 0, 0, 0),
    columns={
        "none": passes("none", "abbb"),
        "rule": passes("rule", "bbaa"),
        "worked": passes("worked", "aaab"),
    },
)


def found(source, policy=None):
    return {one.task: one.utility for one in table_evidence(TABLE, source, policy)}


def test_without_a_policy_every_row_counts():
    assert found("worked") == {"t0": 0, "t1": 1, "t2": 1, "t3": 0}


def test_a_later_source_is_judged_where_the_policy_asks_it():
    agree = Policy(threshold=0.0, sources=("rule", "worked"), combine="agree", guards=())
    assert found("rule", agree) == {"t0": -1, "t1": 0, "t2": 1, "t3": 1}
    assert found("worked", agree) == {"t0": 0, "t2": 1, "t3": 0}, "where rule says what the first pass said"


def test_a_policy_that_does_not_ask_the_source_leaves_every_row():
    assert found("worked", Policy(threshold=0.0, sources=("rule",), guards=())) == found("worked")
