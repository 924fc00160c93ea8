"""Decide whether a single value is a secret, and find the environment variables that hold one."""

import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import quote, unquote

from duckflow.domain.patterns import lazy_regex

SHORTEST = 8
"""Shortest known value, in characters, to search for. Shorter values would match by chance."""

_MARKER = "[redacted:"
_PLACEHOLDERS = frozenset(
    re.findall(
        r"\w+",
        "abc admin bar changeit changeme default demo dummy enter example fake fixme foo guest here hidden "
        "insert invalid mock mypassword mysecret none null password passwd pass placeholder postgres "
        "redacted replace root sample secret some string test testing todo undefined user your yourpassword",
    )
)
_FILLED_IN = lazy_regex(r"^\$[A-Za-z_]|\$[{(]|\{\{|\}\}|^<|>$|^%[sd(]|%\(\w+\)s|\.\.\.|…|\*\*\*|x{4}", re.I)
_CODE = lazy_regex(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)+|[A-Za-z_]+")
_RUN = lazy_regex(r"[A-Za-z0-9+/=]{1,600}+")
_PARTS = lazy_regex(r"[0-9]+|[a-z]+|[A-Z]+|[+/=]+")
_PLAIN_WORDS = lazy_regex(r"[A-Za-z]+(?:[-_. ][A-Za-z]+)*")
_SECRET_NAME = lazy_regex(
    r"(?:^|_)(?:[A-Z]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)|PASS|PWD|AUTH|PAT|DSN)S?(?:_|$)"
)
_OTHER_NAME = lazy_regex(
    r"(?:^|_)(?:PATH|FILE|DIR|URL|URI|NAME|USER|HOST|PORT|TTL|LIMIT|LENGTH|SIZE|COUNT|TYPE|ALGORITHM|REGION|SOCK"
    r"|PREFIX|EXPIRY|ENDPOINT|MODE|LAYOUT|BINDINGS?)$|^(?:OLD)?PWD$|^GPG_KEY$"
)
_URL_PASSWORD = lazy_regex(r"://[^\s/@:]*:([^\s/]+)@")
_SHORTEST_WORDS = 20
"""Value made of plain words, in characters, from which on it counts as a secret."""


def looks_random(value: str, shortest: int = 16) -> bool:
    """Return whether a value looks machine-generated: long, with letters and digits in random order."""
    run = max(_RUN.findall(value), key=len, default="")
    if len(run) < shortest or run.startswith("/"):
        return False
    parts = _PARTS.findall(run)
    numbers = [part for part in parts if part.isdigit()]
    digits = len("".join(numbers))
    letters = len(run) - digits
    mixed = len(numbers) >= 2 or (len(parts) - 1) / len(run) >= 0.45
    return letters >= 2 and ((digits >= 4 and letters >= 4) or mixed)


def looks_like_password(value: str) -> bool:
    """Return whether a value looks like a password: letters, and digits or signs that names do not have."""
    if len(value) < SHORTEST or not any(letter.isalpha() for letter in value):
        return False
    return any(letter.isdigit() or letter in "!@#$%^&*?+~|" for letter in value) and not _CODE.fullmatch(
        value
    )


def is_placeholder(value: str) -> bool:
    """Return whether a value is only a placeholder: a variable, an example, a path, an address, or code."""
    if _MARKER in value or _FILLED_IN.search(value) or len(set(value)) <= 3:
        return True
    if value.startswith(
        ("/", "./", "../", "~", "http:", "https:", "file:", "sha256", "sha512", "env:", "vault:")
    ):
        return True
    if _CODE.fullmatch(value) and "." in value:
        return True
    words = re.split(r"[^a-z0-9]+", value.lower())
    simple = {word.rstrip("0123456789") for word in words} | set(words)
    return bool(simple & _PLACEHOLDERS) and not looks_random(value)


def known_secrets(environment: Mapping[str, str], lent: Collection[str] = ()) -> dict[str, str]:
    """Return the secrets among environment values, each with the kind to show in its marker.

    Variables in `lent` hold tokens whatever their names are.
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        kind = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "secret"
        for secret in (
            (value.strip(),) if name in lent and value.strip() else _secrets_in(name, value.strip())
        ):
            for form in (secret, quote(secret, safe="")):
                found.setdefault(form, kind)
    return found


def _secrets_in(name: str, value: str) -> Iterator[str]:
    password = _URL_PASSWORD.search(value)
    if password:
        yield from (form for form in (password[1], unquote(password[1])) if _worth_hiding(form))
    elif is_secret_name(name) and _worth_hiding(value):
        yield value


def is_secret_name(name: str) -> bool:
    """Return whether a variable with this name holds a secret."""
    folded = name.upper().replace("-", "_")
    if folded.endswith("ACCESS_KEY_ID"):
        return True
    return bool(_SECRET_NAME.search(folded)) and not _OTHER_NAME.search(folded) and not folded.endswith("_ID")


def _worth_hiding(value: str) -> bool:
    """Return whether to redact a value everywhere: not a plain word, a path, a number or a switch."""
    if len(value) < SHORTEST or len(set(value)) <= 2:
        return False
    if value.startswith(("/", "./", "~/")) or "://" in value or "\n" in value.strip():
        return "-----BEGIN" in value
    if value.isdigit():
        return len(value) >= 16
    return not _PLAIN_WORDS.fullmatch(value) or len(value) >= _SHORTEST_WORDS
