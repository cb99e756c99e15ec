"""Read an action from a reply, match it to a valid one, and choose which actions a prompt lists."""

import math
import re
from collections import Counter
from collections.abc import Sequence

REPLY_PATTERN = r"(?is)\s*(?:(?:next )?action\s*:\s*)?[-*>`\"'\s]*([^\n]+?)[`\"'\s]*(?:\n.*)?\Z"
"""The first line of a reply without a leading "Action:", a list mark or quotes around it."""
ANY_TEXT = "[...]"
"""The end of a valid action that allows any text in its brackets."""
GOAL_SHARE = 10
"""Places in a shortlist for a verb of the goal, for each place of another verb."""
NAMED, USED = 4, 2
"""Weights of a word of the goal and of the last action; a word of the observation has 1."""
RELATIONS = frozenset(("at", "down", "from", "in", "into", "of", "on", "out", "the", "to", "up", "with"))
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


def shortlist(
    actions: Sequence[str], goal: str, observation: str, limit: int, last: str = ""
) -> tuple[str, ...]:
    """At most `limit` actions in their own order, likeliest first of each verb in turn.

    An action is likely if its objects are rare among the actions, and are named by the goal, the observation
    or the last action. Verbs of the goal come first and take more places: among hundreds of actions, the one
    that the goal asks for ("focus on …") must be there with most of its objects.
    """
    if len(actions) <= limit:
        return tuple(actions)
    words = [_words(action) or [""] for action in actions]
    counts = Counter(word for some in words for word in set(some))
    named, seen, used = set(_words(goal)), set(_words(observation)), set(_words(last)[1:])

    def likeness(place: int) -> float:
        objects = [word for word in words[place][1:] if word not in RELATIONS]
        worth = 0.0
        for word in dict.fromkeys(objects):
            mentions = NAMED * (word in named) + USED * (word in used) + (word in seen)
            worth += mentions * math.log(len(actions) / counts[word])
        return worth / math.sqrt(len(objects) or 1)

    verbs: dict[str, list[int]] = {}
    for place in sorted(range(len(actions)), key=lambda place: (-likeness(place), place)):
        verbs.setdefault(words[place][0], []).append(place)
    chosen: list[int] = []
    while len(chosen) < limit:
        for verb in sorted(verbs, key=lambda verb: verb not in named):
            share = GOAL_SHARE if verb in named else 1
            chosen += verbs[verb][:share]
            del verbs[verb][:share]
    return tuple(actions[place] for place in sorted(chosen[:limit]))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
