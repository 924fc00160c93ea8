"""Shows the user a reply while the model still writes it: the top-level "reply" string of a JSON object.

What it shows is only a glimpse: the whole answer is read again, strictly, when it is complete. It walks over
each piece once; pydantic_core's partial parsing would read the whole text again for every piece, which took
twenty times as long for a reply of 200 kB, and grows with its square.
"""

import json
from typing import Literal

from duckflow.domain.patterns import late

_OBJECT = late(r'\{\s*+("|\Z)')
_OUTSIDE = late(r'["{}\[\],:]')
_IN_STRING = late(r'["\\]')
_FENCE = late(r"```[^\n]*+\n\s*+")
_TAIL = late(r"\s*+\Z")
_LONGEST_KEY = 64
_THINK, _THOUGHT = "<think>", "</think>"


class ReplyExtractor:
    """Give it the answer in pieces; it returns the characters of the reply as they become certain.

    With `plain`, text that does not begin with an object is itself the reply (SPEC A8).
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._opening = _Opening(plain=plain)
        self._object = _ObjectReply()
        self._space = ""

    def feed(self, text: str) -> str:
        """The next characters of the reply, if any."""
        text = self._opening.feed(text)
        if self._opening.form == "prose":
            return self._prose(text)
        return self._object.feed(text) if text else ""

    def _prose(self, text: str) -> str:
        """White space is shown when something follows it, since the end of a reply has none."""
        shown = text.rstrip()
        if not shown:
            self._space += text
            return ""
        shown, self._space = self._space + shown, text[len(shown) :]
        return shown


class _Opening:
    """Holds the first characters of an answer until they say what it is: an object, or prose."""

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._held = ""
        self._thinking = False
        self.form: Literal["object", "prose"] | None = None

    def feed(self, text: str) -> str:
        if self.form:
            return text
        seen = self._held + text
        if not self._thinking:
            seen = seen.lstrip("\ufeff \t\r\n")
            self._thinking = seen.startswith(_THINK)
        if self._thinking:
            end = seen.find(_THOUGHT)
            if end < 0:
                self._held = seen[-len(_THOUGHT) :]
                return ""
            seen, self._thinking = seen[end + len(_THOUGHT) :].lstrip(), False
        self.form = self._decide(seen)
        self._held = "" if self.form else seen
        return seen if self.form else ""

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
    """Walks over a JSON object that arrives in pieces and decodes its "reply" string."""

    def __init__(self) -> None:
        self._held = ""
        self._depth = 0
        self._over = False
        self._key_next = True
        self._key = ""
        self._string: Literal["key", "reply", "other"] | None = None
        self._escaped = False
        self._reply = Unescaping()

    def feed(self, text: str) -> str:
        at = 0
        if self._depth == 0 and not self._over:
            text = self._seek(text)
        shown: list[str] = []
        while at < len(text) and not self._over and self._depth > 0:
            if self._string is None:
                at = self._outside(text, at)
                continue
            end = self._string_end(text, at)
            shown.append(self._take(text[at : len(text) if end < 0 else end]))
            at = len(text) if end < 0 else end + 1
            if end >= 0:
                self._end_string()
        return "".join(shown)

    def _seek(self, text: str) -> str:
        """From the first quote inside the first object on; nothing before that."""
        found = _OBJECT.search(self._held + text)
        self._held = "{" if found and not found.group(1) else ""
        if not found or self._held:
            return ""
        self._depth = 1
        return found.string[found.start(1) :]

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

    def _string_end(self, text: str, at: int) -> int:
        """The place of the closing quote, -1 where the string goes on past this piece."""
        if self._escaped:
            at, self._escaped = at + 1, False
        while mark := _IN_STRING.search(text, at):
            if mark.group() == '"':
                return mark.start()
            at = mark.end() + 1
        self._escaped = at > len(text)
        return -1

    def _take(self, raw: str) -> str:
        if self._string == "key" and len(self._key) < _LONGEST_KEY:
            self._key += raw
        if self._string != "reply":
            return ""
        shown = self._reply.feed(raw)
        self._over = self._reply.broken
        return shown

    def _end_string(self) -> None:
        if self._string == "key":
            self._key = _decoded(self._key)
        self._over = self._over or self._string == "reply"
        self._string = None


def _decoded(raw: str) -> str:
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return ""


_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LONG = late(r"\\u[0-9a-fA-F]{4}")


class Unescaping:
    """Gives back what is certain by now; half an escape, or half a surrogate pair, waits for the rest."""

    def __init__(self) -> None:
        self._held = ""
        self._high = ""
        self.broken = False

    def feed(self, raw: str) -> str:
        """The next characters. After an escape that is none, `broken` is set and nothing more comes."""
        if self.broken:
            return ""
        raw, self._held = self._held + raw, ""
        shown: list[str] = []
        at = 0
        while (slash := raw.find("\\", at)) >= 0:
            shown.append(self._plain(raw[at:slash]))
            at = slash + (6 if raw[slash + 1 : slash + 2] == "u" else 2)
            if at > len(raw):
                self._held = raw[slash:]
                return "".join(shown)
            shown.append(self._escape(raw[slash:at]))
            if self.broken:
                return "".join(shown)
        shown.append(self._plain(raw[at:]))
        return "".join(shown)

    def _plain(self, text: str) -> str:
        if text and self._high:
            self.broken = True
        return "" if self.broken else text

    def _escape(self, escape: str) -> str:
        if escape[1] in _SHORT:
            return self._plain(_SHORT[escape[1]])
        if not _LONG.fullmatch(escape):
            self.broken = True
            return ""
        digits = self._high + escape[2:]
        if not self._high and 0xD800 <= int(digits, 16) < 0xDC00:
            self._high = digits
            return ""
        self._high = ""
        return self._character(digits)

    def _character(self, digits: str) -> str:
        """The character of one UTF-16 unit, or of a pair of them."""
        try:
            return bytes.fromhex(digits).decode("utf-16-be")
        except UnicodeDecodeError:
            self.broken = True
            return ""
