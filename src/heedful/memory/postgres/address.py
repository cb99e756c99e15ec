"""The URL of a Postgres store; secrets in it are never shown."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

SCHEMES = ("postgresql://", "postgres://")
MISSPELT = re.compile(r"\s*postgres(?:ql)?[:/]|.*\b(?:host|dbname|password)\s*=", re.IGNORECASE)
"""Places that were meant as Postgres: no file has such a name, and each may hold a password."""
SECRETS = ("password", "sslpassword")
HIDDEN = "***"


def is_postgres(place: object) -> bool:
    """Whether a place of a store is a URL of Postgres."""
    return str(place).startswith(SCHEMES)


def is_misspelt(place: str) -> bool:
    """Whether a place was meant as a URL of Postgres, but is none."""
    return not is_postgres(place) and MISSPELT.match(place) is not None


def shown_url(url: str) -> str:
    """The URL without user secrets and options: who connects, to which machine and database."""
    try:
        parts = urlsplit(_without_password(url))
        host = parts.hostname or dict(parse_qsl(parts.query)).get("host", "")
        user = f"{parts.username}@" if parts.username else ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # psycopg says what is wrong with it
        return f"{SCHEMES[0]}{HIDDEN}"
    return f"{SCHEMES[0]}{user}{host}{port}{parts.path}"


def _without_password(url: str) -> str:
    """The URL up to its options, with the user but not the password, which may have an unescaped @ or /."""
    scheme, _, rest = url.partition("//")
    address, _, options = rest.partition("?")
    if "@" in options:
        raise ValueError("the password may have an unescaped ?")
    login, at, place = address.rpartition("@")
    query = f"?{options}" if options else ""
    return f"{scheme}//{login.partition(':')[0]}{at}{place}{query}"


def without_secrets(text: str, url: str) -> str:
    """A text, for example an error of the driver, without the passwords of a URL."""
    text = text.replace(url, shown_url(url))
    for secret in sorted(set(_secrets(url)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def option_names(url: str) -> str:
    """The names of a URL's options, which are no secrets."""
    query = url.partition("?")[2]
    return "" if "@" in query else ", ".join(name for name, _ in parse_qsl(query, keep_blank_values=True))


def _secrets(url: str) -> Iterator[str]:
    """Every spelling of the passwords in a URL; one with an unescaped @ or / is cut in several ways."""
    _, _, rest = url.partition("//")
    for end in (at for at, sign in enumerate(rest) if sign == "@"):
        yield from _spellings(rest[:end].partition(":")[2])
    _, _, query = url.partition("?")
    for name, value in parse_qsl(query):
        if name in SECRETS:
            yield from _spellings(value)


def _spellings(secret: str) -> Iterator[str]:
    if secret:
        yield from (secret, unquote(secret), quote(secret, safe=""))
