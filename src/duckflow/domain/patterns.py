"""Patterns that are compiled when they are first used: there are hundreds, and a start needs few of them."""

import re
from typing import AnyStr, Generic, cast


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, made with its first use."""
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))


class _LatePattern(Generic[AnyStr]):
    """Stands in for a pattern. It has all of its methods, but the functions of `re` do not take it."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> object:
        found = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, found)  # from now on it is there, and nothing is in between
        return found
