"""ASDiv: diverse word problems (Miao et al. 2020); numeric rows, official folds 0–3 for fit, 4 for test."""

from heedful.benchmarks.word_problems import DataFile, WordProblems
from heedful.types import Item, Side

_ALL = DataFile(
    path="asdiv/all.jsonl", sha256="92deaa8cae0db1087f9f8f2299790448e105ec83814a412a7c39b7bf995a7169"
)


def _belongs(item: Item, side: Side) -> bool:
    return bool(item.meta["numeric"]) and (item.meta["fold_w"] == 4) == (side == "test")


def _worked(item: Item) -> str | None:
    formula = str(item.meta.get("formula") or "")
    if formula.count("=") != 1:
        return None
    left, _, _ = formula.partition("=")
    return f"{left.strip()} = {item.answer}. Answer: {item.answer}"


ASDIV = WordProblems(name="asdiv", files={"fit": _ALL, "test": _ALL}, worked=_worked, belongs=_belongs)
