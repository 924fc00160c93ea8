"""Parse one JSON object without recursion, or report exactly what is wrong and where.

Stricter than the standard library: refuses duplicate keys, NaN and infinities, lone surrogates, NUL and very
long numbers, and limits depth and values. More lenient if the meaning is clear: accepts raw line breaks and
tabs in strings, comments, a comma before a closing bracket, and True, False and None.
"""

import json
import math
from typing import NamedTuple, cast

from pydantic import JsonValue

from duckflow.domain.errors import DuckflowError
from duckflow.domain.patterns import lazy_regex

MAX_BYTES = 2_000_000
MAX_DEPTH = 64
MAX_VALUES = 100_000
MAX_NUMBER = 64
_MOST_FAULTS = 10

JsonObject = dict[str, JsonValue]

_SPACE = lazy_regex(r"(?:[ \t\r\n]++|(?://|#)[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_NUMBER = lazy_regex(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD = lazy_regex(r"[+-]?[\w$]++")
_RAW_CONTROL = lazy_regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
SURROGATE = lazy_regex("[\ud800-\udfff]")
_JSON_WORDS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_WORDS = _JSON_WORDS | {"True": True, "False": False, "None": None}
_STRINGS = json.JSONDecoder(strict=False)


class UnusableAnswer(DuckflowError):
    """Answer that can't be used; `faults` are sentences that tell the model everything wrong with it."""

    def __init__(self, *faults: str) -> None:
        super().__init__(*faults)
        self.faults = tuple(dict.fromkeys(faults))

    @property
    def problem(self) -> str:
        """Return all faults in one line."""
        return "; ".join(self.faults)


class FoundObject(NamedTuple):
    """Object or list, its position in the text, and faults that did not stop the parser."""

    value: JsonObject | list[JsonValue]
    start: int
    end: int
    faults: tuple[str, ...] = ()


def parse_object(text: str) -> JsonObject:
    """Parse a text that is one object, with nothing but white space around it."""
    check_size(text)
    text = text.removeprefix("\ufeff").strip()
    if not text.startswith("{"):
        raise UnusableAnswer(f"a JSON object must begin with {{, but this begins with {_snippet(text, 0)}")
    found = read_object(text, 0)
    beyond = f"{_place(text, found.end)}: text follows the end of the object"
    faults = (*found.faults, *((beyond,) if found.end < len(text) else ()))
    if faults:
        raise UnusableAnswer(*faults)
    return cast("JsonObject", found.value)


def check_size(text: str) -> None:
    """Raise UnusableAnswer if the text is too large to be parsed."""
    size = len(text) if len(text) > MAX_BYTES else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise UnusableAnswer(f"the JSON is too large: {size:,} bytes, at most {MAX_BYTES:,} are read")


def read_object(text: str, start: int) -> FoundObject:
    """Parse the object or list whose opening brace or bracket is at `start`."""
    reader = _Reader(text, start)
    value = reader.container()
    return FoundObject(value, start, reader.at, tuple(reader.faults))


class _Reader:
    """Parser that reads the text once. It may recurse because the depth is limited."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.at = start
        self._values = 0
        self.faults: list[str] = []
        """Errors after which the parser could continue."""

    def container(self, depth: int = 1) -> JsonObject | list[JsonValue]:
        if depth > MAX_DEPTH:
            raise self._fault(f"nested deeper than {MAX_DEPTH} levels")
        members: JsonObject = {}
        items: list[JsonValue] = []
        closer = "}" if self._text[self.at] == "{" else "]"
        self.at += 1
        while self._peek() != closer:
            if closer == "}":
                key = self._key(members)
                members[key] = self._value(depth)
            else:
                items.append(self._value(depth))
            after = self._peek()
            if after == ",":
                self.at += 1
            elif after != closer:
                words = f'expected , or {closer} after a value (a quote inside a string is written \\")'
                raise self._fault(words)
        self.at += 1
        return members if closer == "}" else items

    def _key(self, members: JsonObject) -> str:
        if self._peek() != '"':
            raise self._fault("expected a key in double quotes")
        start = self.at
        key = self._string()
        if key in members:
            self._note(f"the key {_quote(key)} appears twice in the same object", start)
        if self._peek() != ":":
            raise self._fault(f"expected : after the key {_quote(key)}")
        self.at += 1
        return key

    def _value(self, depth: int) -> JsonValue:
        first = self._peek()
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._fault(f"more than {MAX_VALUES:,} values")
        if first in "{[":
            return self.container(depth + 1)
        return self._string() if first == '"' else self._number_or_word()

    def _string(self) -> str:
        start = self.at
        try:
            value, self.at = _STRINGS.raw_decode(self._text, start)
        except json.JSONDecodeError as exc:
            if exc.msg.startswith("Unterminated") or '"' not in self._text[exc.pos :]:
                raise self._fault("the text ends inside this string") from exc
            problem = "an invalid escape in a string (a backslash is written \\\\)"
            raise self._fault(problem, exc.pos) from exc
        control = _RAW_CONTROL.search(self._text, start, self.at)
        if control:
            code = ord(control.group())
            self._note(f"a raw control character U+{code:04X} in a string", control.start())
        elif "\0" in value:
            self._note("a NUL character in a string", start)
        if SURROGATE.search(value):
            self._note("half of a surrogate pair in a string", start)
        return value

    def _number_or_word(self) -> JsonValue:
        number, word = _NUMBER.match(self._text, self.at), _WORD.match(self._text, self.at)
        if number and (not word or number.end() >= word.end()):
            value = self._number(number.group())
            self.at = number.end()
            return value
        if not word:
            raise self._fault("expected a value (strings are written in double quotes)")
        if word.group() not in _WORDS:
            self._note(f"{_quote(word.group())} is not a JSON value", self.at)
        self.at = word.end()
        return _WORDS.get(word.group())

    def _number(self, digits: str) -> int | float:
        if len(digits) > MAX_NUMBER:
            self._note(f"a number of {len(digits):,} characters", self.at)
            return 0
        if digits.lstrip("-").isdecimal():
            return int(digits)
        value = float(digits)
        if not math.isfinite(value):
            self._note(f"the number {digits} is too large", self.at)
            return 0
        return value

    def _peek(self) -> str:
        """Skip white space and comments, and return the next character."""
        space = _SPACE.match(self._text, self.at)
        self.at = space.end() if space else self.at
        if self.at >= len(self._text):
            raise self._fault("the text ends before the object does")
        return self._text[self.at]

    def _note(self, problem: str, at: int) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(f"{_place(self._text, at)}: {problem}")

    def _fault(self, problem: str, at: int | None = None) -> UnusableAnswer:
        where = self.at if at is None else at
        return UnusableAnswer(*self.faults, f"{_place(self._text, where)}: {problem}")


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return f"line {line}, column {column}, at {_snippet(text, at)}"


def _snippet(text: str, at: int) -> str:
    return _quote(text[at : at + 30]) if at < len(text) else "the end"


def _quote(text: str) -> str:
    return repr(text[:30])
