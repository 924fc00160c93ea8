"""Finds the one JSON object of an answer in what a model wrote around it: fences, chatter, thoughts."""

import re

from duckflow.domain.patterns import late
from duckflow.llm.answers.strict_json import FoundObject, UnusableAnswer, read_object

_BEGINNING = late(r"""\{\s*+(?:["'}“]|//|/\*|[A-Za-z_$][\w$]*+\s*+:)""")
_QUOTED_KEY = late(r'\{\s*+"')
_STRUCTURE = late(r'\\.|["{}]', re.DOTALL)
_GOES_ON = late(r'[,:\]}"]')
_MOST_BEGINNINGS = 200
_THOUGHTS_END = "</think>"


def after_thoughts(text: str) -> str:
    """The text without byte order mark and without the thoughts some models write in front of the answer."""
    text = text.removeprefix("\ufeff").lstrip()
    if text.startswith(("{", "```")):
        return text
    _, end, rest = text.partition(_THOUGHTS_END)
    return rest.lstrip() if end else text


def find_object(text: str) -> FoundObject:
    """The first object of `text`. Braces of prose are passed over; a broken object is not.

    What only resembles an object, such as `{name: 1}`, is passed over as a whole, so that nothing
    nested in it is ever taken for the answer.
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
            found = read_object(text, start)
        except UnusableAnswer as fault:
            if _QUOTED_KEY.match(text, start):
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


def refuse_more(rest: str) -> None:
    """Refuse what follows the object, unless it is plain text: nothing the model meant may be lost."""
    goes_on = _GOES_ON.match(rest.lstrip())
    if goes_on:
        snippet = rest.lstrip()[:30]
        raise UnusableAnswer(
            f"the object is closed too early or closed twice: after its last brace follows {snippet!r}"
        )
    second = _QUOTED_KEY.search(rest)
    if second:
        snippet = rest[second.start() : second.start() + 30]
        raise UnusableAnswer(
            f"there is more than one JSON object, the second begins with {snippet!r}: give exactly one"
        )


def _closing(text: str, start: int) -> int:
    """The place after the brace that closes the one at `start`, or the end of the text."""
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
