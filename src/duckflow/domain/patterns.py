"""Patterns that are compiled on first use. There are hundreds, and few are needed at the start."""

import re
from typing import AnyStr, Generic, cast


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return the pattern that `re.compile` would return, compiled on first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern(Generic[AnyStr]):
    """Stands in for a pattern. It has all of its methods, but the functions of `re` do not accept it."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> object:
        found = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, found)  # later calls use this attribute instead of __getattr__
        return found
