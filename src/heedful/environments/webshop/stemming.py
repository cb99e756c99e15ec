"""Porter's stemmer (Porter 1980): removes the endings of English words."""

import re
from functools import cache

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "abli": "able",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
}
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism"),
    *("ate", "iti", "ous", "ive", "ize"),
)


@cache
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if len(word) <= 2 or not word.isalpha():
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_STEP_2, _STEP_3):
        word = _replaced(word, endings)
    return _final(_stripped(word))


def _shape(word: str) -> str:
    """Consonants as c and vowels as v; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a vowel sequence is followed by a consonant sequence."""
    return len(re.findall("v+c+", _shape(word)))


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_cvc(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word and _has_vowel(rest):
            return _mended(rest)
    return word


def _mended(rest: str) -> str:
    """A stem after `ed` or `ing` was removed."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and _shape(rest)[-1] == "c" and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_cvc(rest) else rest


def _replaced(word: str, endings: dict[str, str]) -> str:
    ending = max((ending for ending in endings if word.endswith(ending)), key=len, default="")
    rest = word.removesuffix(ending)
    return rest + endings[ending] if ending and _measure(rest) > 0 else word


def _stripped(word: str) -> str:
    ending = max((ending for ending in _STEP_4 if word.endswith(ending)), key=len, default="")
    rest = word.removesuffix(ending)
    if not ending or _measure(rest) <= 1 or (ending == "ion" and not rest.endswith(("s", "t"))):
        return word
    return rest


def _final(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _ends_cvc(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
