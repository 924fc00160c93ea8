"""Find the one JSON object of an answer among code fences, prose and thoughts."""

import re

from duckflow.domain.patterns import lazy_regex
from duckflow.llm.answers.strict_json import FoundObject, UnusableAnswer, read_object

_BEGINNING = lazy_regex(r"""\{\s*+(?:["'}“]|//|/\*|[A-Za-z_$][\w$]*+\s*+:)""")
QUOTED_KEY = lazy_regex(r'\{\s*+"')
_STRUCTURE = lazy_regex(r'\\.|["{}]', re.DOTALL)
_MORE_JSON = lazy_regex(r'[,:\]}"]')
_LISTED = lazy_regex(r"\[\s*+\Z")
_NESTED = lazy_regex(r'(?:"\s*+:|["\]}]\s*+,|\[)\s*+\Z')
_CLOSERS = lazy_regex(r"\A[}\]\s]++")
_MOST_BEGINNINGS = 200
_THOUGHTS_END = "</think>"


def after_thoughts(text: str) -> str:
    """Return the text without a byte order mark and without thoughts that precede the answer."""
    text = text.removeprefix("\ufeff").lstrip()
    if text.startswith(("{", "```")):
        return text
    _, end, rest = text.partition(_THOUGHTS_END)
    return rest.lstrip() if end else text


def find_object(text: str) -> FoundObject:
    """Return the first object of `text`, or the list that begins with this object.

    Raises UnusableAnswer for a broken object, but skips braces in prose. Text that only resembles an object,
    such as `{name: 1}`, is skipped as a whole, so that nothing nested in it is taken for the answer.
    """
    at, doubt, empty = 0, None, None
    if text.startswith("{"):
        return read_object(text, 0)
    for _ in range(_MOST_BEGINNINGS):
        beginning = _BEGINNING.search(text, at)
        if not beginning:
            break
        start = beginning.start()
        try:
            found = read_object(text, _list_around(text, start))
        except UnusableAnswer as fault:
            if QUOTED_KEY.match(text, start):
                raise
            doubt = doubt or fault
            at = _closing(text, start)
            continue
        if found.value:
            return found
        empty, at = empty or found, found.end
    if empty:
        return empty
    raise doubt or UnusableAnswer("there is no JSON object in the answer")


def refuse_more(text: str, found: FoundObject, rest: str) -> None:
    """Refuse an answer in which more JSON follows the object, except a repetition or surplus brackets."""
    rest = rest.lstrip()
    if not _NESTED.search(text, 0, found.start):
        rest = _CLOSERS.sub("", rest, count=1)
    more = _MORE_JSON.match(rest)
    if more:
        raise UnusableAnswer(
            f"the object is closed too early or closed twice: after its last brace follows {rest[:30]!r}"
        )
    while second := QUOTED_KEY.search(rest):
        again = _same(rest, second.start(), found)
        if again is None:
            snippet = rest[second.start() : second.start() + 30]
            raise UnusableAnswer(
                f"there is more than one JSON object, the second begins with {snippet!r}: give exactly one"
            )
        rest = rest[again:]


def _list_around(text: str, start: int) -> int:
    """Return the position of a list bracket directly before the brace at `start`, else `start`."""
    opened = _LISTED.search(text, max(start - 100, 0), start)
    nested = opened and _NESTED.search(text, 0, opened.start())
    return opened.start() if opened and not nested else start


def _same(text: str, start: int, found: FoundObject) -> int | None:
    """Return the end of the object at `start` if it equals the one already found, else None."""
    try:
        again = read_object(text, start)
    except UnusableAnswer:
        return None
    return again.end if again.value == found.value and not again.faults else None


def _closing(text: str, start: int) -> int:
    """Return the position after the brace that closes the one at `start`, or the end of the text."""
    depth, in_string = 0, False
    for token in _STRUCTURE.finditer(text, start):
        mark = token.group()
        if mark == '"':
            in_string = not in_string
        elif not in_string and mark in "{}":
            depth += 1 if mark == "{" else -1
        if depth == 0 and not in_string:
            return token.end()
    return len(text)
