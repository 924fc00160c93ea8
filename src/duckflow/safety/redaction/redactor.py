"""Redaction: secrets are replaced by markers before a model, a screen, a log or the database sees them.

A marker such as `[redacted:github-token:3f2a]` ends with a hash whose key only this process has, so guesses
can't be tested. Text that the model wrote and that only looks like a secret (a key in a test, for example) is
restored right before a tool runs; text read from files, commands or the user never is.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.redaction.patterns import Pattern, lower, patterns_for
from duckflow.safety.redaction.values import SHORTEST, looks_random

MARKER = lazy_regex(r"\[redacted:[a-z0-9-]{1,40}:[0-9a-f]{4}\]")

MOST_LEARNED = 500
"""Largest number of found secrets to remember. Later texts are also searched for remembered secrets."""

MOST_OWN = 2_000
"""Largest number of values written by the model that can be restored."""

T = TypeVar("T")


class Redactor:
    """Replaces known values and all matches of the patterns. `known` maps each value to its kind."""

    def __init__(self, known: Mapping[str, str] | None = None, key: bytes | None = None) -> None:
        # Longest first, because one secret may be part of another.
        self._known = dict(sorted((known or {}).items(), key=lambda one: -len(one[0])))
        self._key = key or secrets.token_bytes(32)
        self._learned: dict[str, str] = {}
        self._own: dict[str, str] = {}
        self._issued: dict[str, bytes] = {}

    @property
    def spaced(self) -> tuple[str, ...]:
        """Known values with spaces or non-ASCII characters: streamed text is otherwise cut at spaces."""
        return tuple(value for value in self._known if not value.isascii() or any(map(str.isspace, value)))

    def clean(self, text: str, *, own: bool = False) -> str:
        """Replace secrets by markers. `own` is True for text of the model, whose secrets can be restored."""
        if len(text) < SHORTEST:
            return text
        text = self._clean_values(text, self._known, own=own)
        text = self._clean_values(text, self._learned, own=own)
        found: dict[str, str] = {}
        lowered = lower(text)
        for pattern in patterns_for(text):
            if pattern.may_fit(text, lowered):
                text = self._clean_pattern(text, lowered, pattern, found, own=own)
                lowered = lower(text)
        learned = {value: kind for value, kind in found.items() if own or looks_random(value, 12)}
        # Remembered values are found in later texts even where no pattern matches.
        self._learned |= {value: kind for value, kind in learned.items() if len(value) >= SHORTEST}
        for oldest in tuple(self._learned)[:-MOST_LEARNED]:
            del self._learned[oldest]
        return self._clean_values(text, learned, own=own)

    def clean_all(self, value: T, *, own: bool = False) -> T:
        """Clean every text inside a value. A value without secrets is returned unchanged."""
        return cast("T", rewrite(value, lambda text: self.clean(text, own=own)))

    def restore(self, value: T) -> T:
        """Replace markers in a value by the texts that the model itself wrote."""
        if not self._own:
            return value

        def put_back(text: str) -> str:
            return MARKER.sub(lambda marker: self._own.get(marker[0], marker[0]), text)

        return cast("T", rewrite(value, put_back))

    def _clean_values(self, text: str, values: Mapping[str, str], *, own: bool) -> str:
        for value, kind in values.items():
            if value in text:
                text = text.replace(value, self._mark(value, kind, own=own))
        return text

    def _clean_pattern(
        self, text: str, lowered: str, pattern: Pattern, found: dict[str, str], *, own: bool
    ) -> str:
        pieces: list[str] = []
        end = 0
        for start, stop, kind in pattern.find(text, lowered):
            value = text[start:stop]
            pieces += (text[end:start], self._mark(value, kind, own=own))
            found[value] = kind
            end = stop
        return "".join((*pieces, text[end:])) if pieces else text

    def _mark(self, value: str, kind: str, *, own: bool) -> str:
        """Return the marker for a value. Different values never share a marker."""
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self._key).digest()
        for turn in range(len(digest) - 1):
            marker = f"[redacted:{kind}:{digest[turn : turn + 2].hex()}]"
            if self._issued.setdefault(marker, digest) == digest:
                break
        else:
            raise AssertionError("as many secrets as there are markers")
        if own:
            self._own[marker] = value
            if len(self._own) > MOST_OWN:
                del self._own[next(iter(self._own))]
        return marker


def rewrite(value: object, change: Callable[[str], str]) -> object:
    """Apply `change` to every text in a value. Return the same object if nothing changes."""
    if type(value) is str:
        return change(value)
    if isinstance(value, BaseModel):
        fields = ((name, one, rewrite(one, change)) for name, one in value.__dict__.items())
        update = {name: new for name, one, new in fields if new is not one and new != one}
        return value.model_copy(update=update) if update else value
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        changed = {rewrite(name, change): rewrite(one, change) for name, one in pairs.items()}
        return pairs if changed == pairs else changed
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        new = [rewrite(one, change) for one in items]
        if all(one is other for one, other in zip(new, items, strict=True)):
            return items
        return new if isinstance(items, list) else tuple(new)
    return value


def refuse_markers(args: object) -> None:
    """Raise ToolError if the arguments contain a marker, which must not be used in place of its secret."""

    def refuse(marker: re.Match[str]) -> str:
        raise ToolError(
            f"{marker[0]} stands for a secret that is hidden from you, so it can't be written or run. "
            "Nothing was changed. Change only the other parts of the file with file_ops.edit_file, with "
            "texts that do not contain the marker; or let the program read the secret from its environment; "
            "or ask the user to put it there.",
            "reason.secret",
        )

    rewrite(args, lambda text: MARKER.sub(refuse, text))
