"""Read an action from a reply, match it to a valid one, and choose which actions a prompt lists."""

import math
import re
from collections import Counter
from collections.abc import Sequence

REPLY_PATTERN = r"(?is)\s*(?:(?:next )?action\s*:\s*)?[-*>`\"'\s]*([^\n]+?)[`\"'\s]*(?:\n.*)?\Z"
"""The first line of a reply without a leading "Action:", a list mark or quotes around it."""
ANY_TEXT = "[...]"
"""The end of a valid action that allows any text in its brackets."""
FINAL_REMARK = re.compile(r"\s+[\[(][^\[\]()]*[\])]?\W*\Z")


def match_action(reply: str, actions: Sequence[str]) -> str | None:
    """The valid action that a reply names, up to case, spaces and a final full stop; None if none does.

    A remark in brackets after a valid action is ignored: small models add `[...]` to any action.
    """
    if not actions:
        return reply.strip() or None
    if named := _named(reply, actions):
        return named
    if filled := next((text for action in actions if (text := _filled(action, reply)) is not None), None):
        return filled
    return _named(FINAL_REMARK.sub("", reply), actions)


def _named(reply: str, actions: Sequence[str]) -> str | None:
    said = _plain(reply)
    return next((it for it in actions if _plain(it) == said and not it.endswith(ANY_TEXT)), None)


def _filled(action: str, reply: str) -> str | None:
    """The reply as an action with free text; a reply that was cut before its closing bracket counts."""
    if not action.endswith(ANY_TEXT):
        return None
    verb = action.removesuffix(ANY_TEXT)
    match = re.fullmatch(rf"\s*{re.escape(verb)}\s*\[([^\]]+)\]?\W*", reply, re.IGNORECASE | re.DOTALL)
    inner = " ".join(match[1].split()) if match else ""
    return f"{verb}[{inner}]" if inner and inner != "..." else None


def _plain(action: str) -> str:
    return " ".join(action.casefold().replace(" [", "[").split()).rstrip(".").strip("`\"' ")


def shortlist(actions: Sequence[str], goal: str, observation: str, limit: int) -> tuple[str, ...]:
    """At most `limit` actions in their own order: the likeliest of each verb, then the likeliest.

    An action is likely if its words are rare among the actions and occur in the goal or the observation.
    """
    if len(actions) <= limit:
        return tuple(actions)
    words = [_words(action) for action in actions]
    counts = Counter(word for some in words for word in set(some))
    wanted, seen = set(_words(goal)), set(_words(observation))

    def likeness(place: int) -> float:
        worth = sum(
            math.log(len(actions) / counts[word]) * (2.0 * (word in wanted) + (word in seen))
            for word in set(words[place])
        )
        return worth / math.sqrt(len(words[place]) or 1)

    ranked = sorted(range(len(actions)), key=lambda place: (-likeness(place), place))
    verbs: dict[str, int] = {}
    for place in ranked:
        verbs.setdefault(words[place][0] if words[place] else "", place)
    chosen = list(dict.fromkeys((*verbs.values(), *ranked)))[:limit]
    return tuple(actions[place] for place in sorted(chosen))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
