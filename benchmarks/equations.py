"""Where memory hurt an answer: was the equation wrong, or only the model's arithmetic?

Exemplars whose worked answer is one equation teach a model to write an equation too. For each row that a
source hurt, this evaluates the first equation of its text and compares it with the right answer, which is
the first pass's answer there. It needs no data and no model calls:

    python benchmarks/equations.py results/multiarith --source exemplar
"""

import argparse
import ast
import json
import operator
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

from heedful.benchmarks.metrics import read_number
from heedful.protocol.ledger import Ledger

EQUATION = re.compile(r"([\d(][\d\s.+\-*/()×÷$,]*[\d)])\s*=")
SIGNS = str.maketrans({"×": "*", "÷": "/", "$": None, ",": None})
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def value_of(node: ast.expr) -> Fraction:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return Fraction(OPERATORS[type(node.op)](value_of(node.left), value_of(node.right)))
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    raise ValueError(f"not arithmetic: {ast.dump(node)}")


def verdict(text: str, right: Fraction | None) -> str:
    """Whether the first equation of a text gives the right answer."""
    equation = EQUATION.search(text)
    if equation is None:
        return "no equation"
    try:
        value = value_of(ast.parse(equation[1].translate(SIGNS).strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return "no equation"
    return "right equation, wrong sum" if value == right else "another equation"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path)
    parser.add_argument("--source", required=True)
    parser.add_argument("--side", choices=("fit", "test"), default="test")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    ledger = Ledger(given.study / "ledger.jsonl")
    first = {(row.seed, row.task): row for row in ledger.of(given.side, "none")}
    pairs = [(first[row.seed, row.task], row) for row in ledger.of(given.side, given.source)]
    rows = [(before.record, after.record) for before, after in pairs]
    hurt = [(before.record, after.record) for before, after in pairs if before.right and not after.right]
    verdicts = Counter(verdict(after.text, read_number(before.answer)) for before, after in hurt)
    tokens = [
        sum(row.usage.completion_tokens for row in column) / len(rows) for column in zip(*rows, strict=True)
    ]
    figures = {
        "rows": len(rows),
        "spoiled": len(hurt),
        **verdicts,
        "tokens": [round(mean) for mean in tokens],
    }
    print(
        json.dumps(figures) if given.json else "\n".join(f"{key}: {value}" for key, value in figures.items())
    )


if __name__ == "__main__":
    main()
