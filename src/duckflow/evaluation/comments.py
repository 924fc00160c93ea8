"""JSON as some tools write it, with comments and trailing commas, made into plain JSON."""

import re

# What is not closed is taken to its end, so that no text makes these slow.
_STRING = r'"(?:[^"\\\n]++|\\.)*+"?'
_TOKEN = re.compile(rf"{_STRING}|//[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING = re.compile(rf"({_STRING})|,(?=\s*+[\]}}])", re.DOTALL)


def without_comments(text: str) -> str:
    """The text without comments and without a comma before a closing bracket; strings stay as they are."""
    bare = _TOKEN.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    return _TRAILING.sub(lambda match: match[1] or "", bare)
