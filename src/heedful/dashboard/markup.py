"""HTML from functions: every text is escaped, and only markup made here is not."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"input", "link", "meta", "br"})
"""Elements without content and end tag."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup | int | None | Iterable["str | Markup | int | None"]
Attribute = str | int | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element; strings are escaped, None and False attributes are left out.

    An attribute is named with underscores for hyphens, and with one at the end if Python reserves its name.
    """
    head = tag + "".join(
        f" {_name(name)}{_value(value)}" for name, value in attributes.items() if _is_set(value)
    )
    return Markup(f"<{head}>" if tag in VOID else f"<{head}>{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Markup:
    """Children after one another, escaped unless they are markup."""
    return Markup("".join(map(_text, children)))


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    return escape(str(child)) if isinstance(child, str | int) else join(child)


def _is_set(value: Attribute) -> bool:
    return value is not None and value is not False


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: Attribute) -> str:
    if value is True:
        return ""
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f'="{escape(shown)}"'
