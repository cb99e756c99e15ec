"""Which rows are evidence for an entry."""

from dataclasses import replace

from heedful import Entry, Policy
from heedful.experiments.study_evidence import table_evidence
from heedful.governance.evidence import standings
from heedful.protocol.table import Column, Table, make_column
from heedful.records import PassRecord, RecallRef


def passes(source: str, answers: str) -> Column:
    """Passes of one source that recalled one entry; `a` is right, and the first pass is unsure."""
    recalled = RecallRef(entry=f"of {source}", version="1", score=1.0)
    return make_column(
        [
            PassRecord(
                source=source,
                prompt="",
                model="",
                status="decoded",
                answer=answer,
                signals={"mean": -1.0},
                recalls=() if source == "none" else (recalled,),
                calls=1,
            )
            for answer in answers
        ],
        [answer == "a" for answer in answers],
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


def found(source: str, policy: Policy | None = None) -> dict[str, float]:
    return {one.task: one.utility for one in table_evidence(TABLE, source, policy)}


def test_without_a_policy_every_row_counts() -> None:
    assert found("worked") == {"t0": 0, "t1": 1, "t2": 1, "t3": 0}


def test_a_later_source_is_judged_where_the_policy_asks_it() -> None:
    agree = Policy(threshold=0.0, sources=("rule", "worked"), combine="agree", guards=())
    assert found("rule", agree) == {"t0": -1, "t1": 0, "t2": 1, "t3": 1}
    assert found("worked", agree) == {"t0": 0, "t2": 1, "t3": 0}, "where rule says what the first pass said"


def test_a_policy_that_does_not_ask_the_source_leaves_every_row() -> None:
    assert found("worked", Policy(threshold=0.0, sources=("rule",), guards=())) == found("worked")


def test_the_first_copy_of_a_question_is_the_evidence() -> None:
    copies = replace(TABLE, cluster_of={"t1": "t1", "t2": "t1"})
    entry = Entry(id="of rule", text="", kind="rule")
    evidence = [replace(one, version=entry.digest) for one in table_evidence(copies, "rule")]
    (plain,) = standings([entry], evidence)
    (once,) = standings([entry], evidence, cluster_of=copies.cluster_of)
    assert list(plain.utilities) == [-1, 0, 1, 1]
    assert list(once.utilities) == [-1, 0, 1]
