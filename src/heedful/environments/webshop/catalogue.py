"""The products of the shop, read from a JSONL file."""

import random
from functools import cached_property
from pathlib import Path

import msgspec

from heedful.errors import MissingError, UsageError

FILE = "webshop/products.jsonl"
DEFAULT_PRICE = 100.0
"""The price of a product without one."""


class Product(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A product; one with an instruction is the target of goals."""

    asin: str
    title: str = ""
    category: str = ""
    query: str = ""
    """The search by which it was collected: its type."""
    product_category: str = ""
    description: str = ""
    bullets: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = {}
    pricing: tuple[float, ...] = ()
    attributes: tuple[str, ...] = ()
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] | None = None

    @cached_property
    def price(self) -> float:
        """A price within its range, drawn by its id."""
        if len(self.pricing) < 2:
            return self.pricing[0] if self.pricing else DEFAULT_PRICE
        low, high = sorted(self.pricing[:2])
        return round(random.Random(self.asin).uniform(low, high), 2)

    @property
    def price_text(self) -> str:
        return f"${' to $'.join(map(str, self.pricing[:2] or (DEFAULT_PRICE,)))}"

    @cached_property
    def text(self) -> str:
        """Title, features and description in lower case."""
        return " ".join((self.title, *self.bullets, self.description)).lower()

    @cached_property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """Values by option, as the buttons show them."""
        return {
            name.lower(): tuple(value.strip().lower() for value in values)
            for name, values in sorted(self.options.items())
        }


def read_products(data: Path) -> list[Product]:
    """The products in the data folder, in the order of the file."""
    file = data / FILE
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise MissingError(
            f"the products of WebShop are missing: {file} cannot be read ({error.strerror}); put them there, "
            "or set HEEDFUL_DATA or --data to the folder that has them"
        ) from error
    products = [_product(file, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if len({product.asin.lower() for product in products}) < len(products):
        raise UsageError(f"{file} has an asin more than once; give each product a unique one")
    return products


def _product(file: Path, number: int, line: bytes) -> Product:
    try:
        return msgspec.json.decode(line, type=Product)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{file} line {number} is not a product: {error}") from error
