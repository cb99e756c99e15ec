"""The arms of an agent study as a table, like the paper's."""

from published.cells import NOT_YET, Fields, report, table

HEAD = (
    "arm",
    "success",
    "score",
    "against no memory",
    "helps / hurts",
    "HAR",
    "LTR",
    "TR",
    "calls",
    "consulted",
    "accepted",
    "invalid",
)


def agents_table(study: str) -> str:
    """Every arm of a study on the test episodes that all arms have played."""
    found = report(study)
    if found is None:
        return NOT_YET
    rows = [_row(name, arm, is_baseline=name == "no memory") for name, arm in found["arms"].items()]
    return table(HEAD, rows)


def _row(name: str, arm: Fields, *, is_baseline: bool) -> tuple[str, ...]:
    spent = tuple(f"{arm[key]:.2f}" for key in ("calls", "routed", "accepted", "invalid"))
    means = (f"{100 * arm['success']:.0f}%", f"{arm['score']:.3f}")
    if is_baseline:
        return (name, *means, "", "", "", "", "", *spent)
    against = (
        change(arm["delta"]["score"]),
        f"{arm['helps']} / {arm['hurts']}",
        *(_rate(arm[key]) for key in ("har", "ltr", "tr")),
    )
    return (name, *means, *against, *spent)


def change(interval: Fields) -> str:
    """A difference with its interval; if all pairs differ alike, there is none."""
    value, low, high = (f"{interval[key]:+.3f}".replace("-", "−") for key in ("value", "low", "high"))
    return value if interval["low"] == interval["high"] else f"{value} [{low}, {high}]"


def _rate(number: float | None) -> str:
    return "–" if number is None else f"{number:.3f}".replace("-", "−")
