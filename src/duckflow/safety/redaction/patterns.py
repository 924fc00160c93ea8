"""Patterns of secrets. Repeats are bounded, so that matching takes linear time. Tokens are in tokens.txt."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.redaction.values import is_placeholder, looks_like_password, looks_random

NAME_NEEDLES = ("passw", "passphrase", "pwd", "secret", "token", "credential", "key")
"""Lower-case parts of names. A text without any of these is not searched for named secrets."""

_NAME = (
    r"(?P<name>pass(?:word|wd|phrase)|pwd|secret|token|credential"
    r"|(?:api|access|private|secret|auth|account|encryption|signing|master|service)[_-]?key)s?"
)
_NAMED = lazy_regex(rf"{_NAME}(?=[a-z0-9_-]{{0,30}}+[\"'`\\]{{0,4}}[ \t]{{0,8}}[:=!])")
"""Finds places to check in the lower-cased text, which is many times faster than checking every place."""

_SUFFIX = r"(?:[_-]?(?:key|base|value|prod|production|dev|staging|live|test|\d{1,3})){0,2}"
_TYPE = r"(?:[ \t]{0,4}:[ \t]{0,4}(?:str|string|SecretStr)(?:[ \t]?\|[ \t]?None)?(?=[ \t]{0,4}=))?"
_SIGN = r"\\{0,3}[\"'`]?[ \t]{0,8}(?:[:!]?={1,3}|=>|:)[ \t]{0,8}"
_QUOTED = r"\\{0,3}(?P<quote>[\"'`])(?P<quoted>[^\"'`\\\s]{8,512}+)(?=\\{0,3}(?P=quote))"
_CAPITALS = (
    r"(?P<name>PASS(?:WORD|WD|PHRASE)|PWD|SECRET|TOKEN|CREDENTIAL"
    r"|(?:API|ACCESS|PRIVATE|SECRET|AUTH|ACCOUNT|ENCRYPTION|SIGNING|MASTER|SERVICE)_?KEY)S?"
    r"(?:_?(?:KEY|BASE|VALUE|PROD|PRODUCTION|DEV|STAGING|LIVE|TEST|\d{1,3})){0,2}"
    r"=(?P<secret>[^\s\"'`\\][^\s\\]{7,511}+)(?=[\s\\]|$)"
)
_LONG_WORD = lazy_regex(r"[A-Za-z0-9_.~+/=%:@&-]{14,}+")
_DIGIT = lazy_regex(r"[0-9]")
_BARE = r"(?P<bare>[^\s\"'`\\,;(){}\[\]<>&]{8,512}+)(?=[\s\\&\"'`]|$)"


class FoundSecret(NamedTuple):
    """Start and end of a secret in a text, and the kind to show in its marker."""

    start: int
    end: int
    kind: str


class Pattern(NamedTuple):
    """One kind of secret. A text is searched only if it contains one of `needles`."""

    kind: str
    needles: tuple[str, ...]
    expression: re.Pattern[str]
    """Regular expression. Its group `secret`, `quoted` or `bare` is the secret, else the whole match."""
    judge: Callable[[re.Match[str]], bool] | None = None
    """Optional check that can reject a match."""
    hint: re.Pattern[str] | None = None
    """Finds places in the lower-cased text where `expression` is tried. Needles are then in lower case."""

    def find(self, text: str, lowered: str) -> Iterator[FoundSecret]:
        """Yield the secrets of this kind from left to right. `lowered` is `text` in lower case."""
        if not self.may_fit(text, lowered):
            return
        for match in (
            self._at_hints(text, lowered, self.hint) if self.hint else self.expression.finditer(text)
        ):
            if self.judge is None or self.judge(match):
                groups = match.groupdict()
                part = next((one for one in ("secret", "quoted", "bare") if groups.get(one) is not None), 0)
                yield FoundSecret(*match.span(part), _family(groups.get("name")) or self.kind)

    def may_fit(self, text: str, lowered: str) -> bool:
        """Return whether the text contains a needle. Called for every kind and text, so it must be fast."""
        where = lowered if self.hint else text
        for needle in self.needles:  # noqa: SIM110 - any() takes twice as long
            if needle in where:
                return True
        return False

    def _at_hints(self, text: str, lowered: str, hint: re.Pattern[str]) -> Iterator[re.Match[str]]:
        end = 0
        for place in hint.finditer(lowered):
            match = self.expression.match(text, place.start()) if place.start() >= end else None
            if match:
                yield match
                end = match.end()


def lower(text: str) -> str:
    """Return the text in lower case and of the same length: letters that would become two stay unchanged."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one.lower() if one.isascii() else one for one in text)


def _family(name: str | None) -> str:
    folded = (name or "").lower()
    if folded.startswith(("pass", "pwd")):
        return "password"
    return folded if folded in ("token", "secret", "credential", "") else "key"


def _key_like(found: re.Match[str]) -> bool:
    """Check a match that may be an ordinary name: the part after the prefix must look like a key."""
    secret = found[0].replace("-", "").replace("_", "")
    return sum(letter.isdigit() for letter in secret) >= 4 or looks_random(secret)


def _url_password(found: re.Match[str]) -> bool:
    secret = found["secret"]
    port = secret.isdigit() and len(secret) <= 5
    marked = found["user"].startswith("[redacted")
    return not port and not marked and secret != found["user"] and not is_placeholder(secret)


def _given(found: re.Match[str]) -> bool:
    return not is_placeholder(found["secret"])


def _credentials(found: re.Match[str]) -> bool:
    return looks_random(found["secret"], 12)


def _assigned(found: re.Match[str]) -> bool:
    """Check an assigned value. Without quotes it may be a variable, so it must look more like a secret."""
    value = found["quoted"] or found["bare"]
    if is_placeholder(value):
        return False
    if _family(found["name"]) != "password":
        return looks_random(value)
    if found["quoted"] or any(sign in value for sign in "!@#$%^*?~|"):
        return looks_like_password(value) or (not found["quoted"] and looks_random(value, 12))
    return looks_random(value, 12)


def _in_capitals(found: re.Match[str]) -> bool:
    """Check `NAME=value` in capitals. This is not code, so the text after the sign is the value itself."""
    value = found["secret"]
    if is_placeholder(value):
        return False
    if _family(found["name"]) != "password":
        return looks_random(value)
    return looks_like_password(value) or (value.isalpha() and len(value) >= 12)


def all_patterns() -> tuple[Pattern, ...]:
    """Return all patterns in order. Text that one pattern redacts is not searched for later patterns."""
    return (_PRIVATE_KEY, *_tokens(), *_JUDGED)


def patterns_for(text: str) -> tuple[Pattern, ...]:
    """Return the patterns to search a text for. Skips the tokens if no long word has a digit."""
    words = "\n".join(word for word in _LONG_WORD.findall(text) if _DIGIT.search(word))
    tokens = [row for row in _tokens() if row.may_fit(words, "")] if words else ()
    return (_PRIVATE_KEY, *tokens, *_JUDGED)


def lines_with_secrets(text: str) -> frozenset[int]:
    """Return the numbers of the lines that contain a secret or a part of one."""
    lowered = lower(text)
    found: set[int] = set()
    for pattern in patterns_for(text):
        for secret in pattern.find(text, lowered):
            first = text.count("\n", 0, secret.start) + 1
            found.update(range(first, first + text.count("\n", secret.start, secret.end) + 1))
    return frozenset(found)


@cache
def _tokens() -> tuple[Pattern, ...]:
    table = Path(__file__).with_name("tokens.txt").read_text("utf-8")
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    return tuple(
        Pattern(kind, tuple(needles.split(",")), lazy_regex(rf"(?<![A-Za-z0-9])(?:{expression})", re.ASCII))
        for kind, needles, expression in rows
    )


_PRIVATE_KEY = Pattern(
    "private-key",
    ("PRIVATE KEY",),
    lazy_regex(
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\"'+,]|-(?!-)|\\[nrt\\]){0,24}+"
        r"(?:[A-Za-z][A-Za-z-]{1,20}: [^\n\\]{1,200}+(?:[\s+-]|\\[nr]){1,8}+){0,4}+"
        r"[A-Za-z0-9+/=]{16,100}+"
        r"(?:[A-Za-z0-9+/=\s\"',\\]|-(?!----)){0,20000}+"
        r"(?:-{5,6}END [A-Z0-9 ]{0,40}-----)?",
    ),
)
_OPENAI_KEY = lazy_regex(r"(?<![\w-])sk-(?:proj-|svcacct-|admin-|or-v1-)?[\w-]{20,255}+", re.ASCII)
_URL = lazy_regex(
    r"(?<=://)(?P<user>[^\s/@:\"'`<>\\]{0,100}+):(?P<secret>[^\s/\"'`<>\\]{3,200})@(?=[A-Za-z0-9\[])"
)
_LOGIN = lazy_regex(r"\b(?:bearer|basic|token)[ \t]{1,4}(?P<secret>[\w+/=.~-]{12,2048}+)", re.I | re.A)
_NETRC = lazy_regex(r"\blogin\s{1,8}+[^\s]{1,100}+\s{1,8}+password\s{1,8}+(?P<secret>[^\s]{4,200}+)")
_DJANGO = lazy_regex(r"SECRET_KEY\s{0,4}+=\s{0,4}+[\"'](?P<secret>[a-z0-9!@#$%^&*()_=+-]{50})[\"']")
_ASSIGNED = lazy_regex(f"{_NAME}{_SUFFIX}{_TYPE}{_SIGN}(?:{_QUOTED}|{_BARE})", re.I | re.A)
_LOGIN_HINT = lazy_regex(r"(?:bearer|basic|token)(?=[ \t])")

_JUDGED: tuple[Pattern, ...] = (
    Pattern("openai-key", ("sk-",), _OPENAI_KEY, _key_like),
    Pattern("url-password", ("://",), _URL, _url_password),
    Pattern("credentials", ("bearer", "basic", "token"), _LOGIN, _credentials, _LOGIN_HINT),
    Pattern("netrc-password", ("login",), _NETRC, _given),
    Pattern("django-key", ("django-insecure-",), lazy_regex(r"django-insecure-[^\s\"'`\\]{20,100}+")),
    Pattern("django-key", ("SECRET_KEY",), _DJANGO),
    Pattern("secret", NAME_NEEDLES, lazy_regex(_CAPITALS), _in_capitals, _NAMED),
    Pattern("secret", NAME_NEEDLES, _ASSIGNED, _assigned, _NAMED),
)
"""Patterns that need more than a prefix: a name before the value, or a check."""
