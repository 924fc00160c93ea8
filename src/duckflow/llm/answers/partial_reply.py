"""Extract the top-level "reply" string of a JSON object while it arrives, to display it early.

Each piece is read once. pydantic_core's partial parsing reads the whole text again for every piece, which
took twenty times as long for a reply of 200 kB.
"""

import json
from typing import Literal

from duckflow.domain.patterns import lazy_regex

_OBJECT = lazy_regex(r'\{\s*+("|\Z)')
_OUTSIDE = lazy_regex(r'["{}\[\],:]')
_CHARACTERS = lazy_regex(
    r'(?:[^"\\]++|\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*+"
)
"""Pattern for complete characters of a string, escaped or not; a surrogate pair is one character."""
_LONGEST_ESCAPE = 12
_FENCE = lazy_regex(r"```[^\n]*+\n\s*+")
_LONGEST_KEY = 64
_THINK, _THOUGHT = "<think>", "</think>"


class ReplyExtractor:
    """Parser that takes the answer in pieces and returns the characters of the reply as they become certain.

    With `plain`, text that does not begin with an object is the reply itself (A8).
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._opening = ""
        """First characters, until it is clear whether they begin an object or prose."""
        self._thinking = False
        self._form: Literal["object", "prose"] | None = None
        self._object = _ObjectReply()
        self._space = ""
        """White space at the end of prose, held back because a reply does not end with any."""

    def feed(self, text: str) -> str:
        """Take the next piece of the answer, and return the next characters of the reply."""
        if self._form is None:
            text = self._open(text)
        if self._form == "object":
            return self._object.feed(text)
        shown = text.rstrip()
        if not shown:
            self._space += text
            return ""
        shown, self._space = self._space + shown, text[len(shown) :]
        return shown

    def _open(self, text: str) -> str:
        """Return the characters seen so far, without thoughts, once their form is known."""
        seen = self._opening + text
        if not self._thinking:
            seen = seen.lstrip("\ufeff \t\r\n")
            self._thinking = seen.startswith(_THINK)
        if self._thinking:
            end = seen.find(_THOUGHT)
            if end < 0:
                self._opening = seen[-len(_THOUGHT) :]
                return ""
            seen, self._thinking = seen[end + len(_THOUGHT) :].lstrip(), False
        self._form = self._decide(seen)
        self._opening = "" if self._form else seen
        return seen if self._form else ""

    def _decide(self, seen: str) -> Literal["object", "prose"] | None:
        if not seen or _THINK.startswith(seen):
            return None
        if not self._plain or seen.startswith("{"):
            return "object"
        if "```".startswith(seen[:3]) and "\n" not in seen:
            return None
        fence = _FENCE.match(seen)
        if fence and fence.end() == len(seen):
            return None
        return "object" if fence and seen[fence.end()] == "{" else "prose"


class _ObjectReply:
    def __init__(self) -> None:
        self._held = ""
        """Start of an object or of an escape sequence whose next characters have not arrived yet."""
        self._depth = 0
        self._over = False
        self._key_next = True
        self._key = ""
        self._string: Literal["key", "reply", "other"] | None = None

    def feed(self, text: str) -> str:
        text, self._held = self._held + text, ""
        at = 0 if self._depth else self._seek(text)
        shown: list[str] = []
        while at < len(text) and not self._over:
            if self._string is None:
                at = self._outside(text, at)
                continue
            end = _CHARACTERS.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess] - always matches
            shown.append(self._take(text[at:end]))
            if text[end : end + 1] == '"':
                self._over = self._string == "reply"
                self._string = None
                end += 1
            elif end < len(text):
                self._held = text[end:]  # half an escape or half a surrogate pair; or an invalid escape
                self._over = len(self._held) >= _LONGEST_ESCAPE
                break
            at = end
        return "".join(shown)

    def _seek(self, text: str) -> int:
        """Return the position of the first quote inside the first object."""
        found = _OBJECT.search(text)
        if not found:
            return len(text)
        self._held = "" if found[1] else "{"
        self._depth = 1 if found[1] else 0
        return found.start(1)

    def _outside(self, text: str, at: int) -> int:
        mark = _OUTSIDE.search(text, at)
        if not mark:
            return len(text)
        match mark.group():
            case '"':
                self._begin_string()
            case "{" | "[":
                self._depth += 1
            case "}" | "]":
                self._depth -= 1
                self._over = self._depth == 0
            case sign:
                self._key_next = sign == "," if self._depth == 1 else self._key_next
        return mark.end()

    def _begin_string(self) -> None:
        if self._depth > 1:
            self._string = "other"
        elif self._key_next:
            self._string, self._key = "key", ""
        else:
            self._string = "reply" if self._key == "reply" else "other"

    def _take(self, raw: str) -> str:
        if self._string == "key" and len(self._key) < _LONGEST_KEY:
            self._key += _decoded(raw)
        return _decoded(raw) if self._string == "reply" else ""


def _decoded(raw: str) -> str:
    return str(json.loads(f'"{raw}"', strict=False))
