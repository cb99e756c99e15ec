"""Small products of a made-up shop."""

import json
from pathlib import Path

from heedful.environments.webshop.catalogue import FILE

KINDS = ("mug", "lamp", "rug", "kettle")


def product(number: int, **changes: object) -> dict[str, object]:
    kind = KINDS[number % len(KINDS)]
    fields: dict[str, object] = {
        "asin": f"B{number:09d}",
        "title": f"Velkirk {kind} model {number} for the kitchen table",
        "category": "garden",
        "query": f"{kind}s",
        "product_category": f"Home › Kitchen › {kind}s",
        "description": f"A {kind} that is dishwasher safe.",
        "bullets": ["sturdy handle", f"number {number}"],
        "options": {"size": ["small", "large"], "color": ["red", "sky blue"]},
        "pricing": [12.5, 14.0] if number % 2 else [30.0],
        "attributes": ["dishwasher safe"],
        "instruction": f"Find me a dishwasher safe {kind} number {number}",
        "instruction_attributes": ["dishwasher safe"],
    }
    return {**fields, **changes}


def write_products(folder: Path, count: int = 400) -> Path:
    """A data folder with products; each has an instruction and four goals."""
    file = folder / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(product(number)) + "\n" for number in range(count)))
    return folder
