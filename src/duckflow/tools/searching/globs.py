"""File patterns as people write them: *.py anywhere, src/**/*.ts from the start, {a,b} for either."""

import re
from collections.abc import Callable
from fnmatch import translate

from duckflow.domain.errors import ToolError

_ALTERNATIVES = 64
_LONGEST = 300


def file_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a relative path matches. A pattern without a slash is about the name alone."""
    if len(pattern) > _LONGEST:
        raise ToolError(f"The pattern is too long: {_LONGEST} characters at most.")
    choices = [choice.removeprefix("./").strip("/").split("/") for choice in _alternatives(pattern)]
    compiled = [[_part(part) for part in choice] for choice in choices]

    def matches(path: str) -> bool:
        names = path.split("/")
        return any(_match(parts, names[-1:] if len(parts) == 1 else names) for parts in compiled)

    return matches


def _part(glob: str) -> re.Pattern[str] | None:
    """One part of a pattern; None stands for ** (any number of folders)."""
    return None if glob == "**" else re.compile(translate(glob))


def _match(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """All ways at once: `places` are the parts that may come next."""
    places = _reachable(parts, {0})
    for name in names:
        following: set[int] = set()
        for place in places - {len(parts)}:
            pattern = parts[place]
            if pattern is None:
                following.add(place)
            elif pattern.match(name):
                following.add(place + 1)
        places = _reachable(parts, following)
    return len(parts) in places


def _reachable(parts: list[re.Pattern[str] | None], places: set[int]) -> set[int]:
    """With those behind a **, which may stand for nothing."""
    found = set(places)
    for place in sorted(places):
        following = place
        while following < len(parts) and parts[following] is None:
            following += 1
            found.add(following)
    return found


def _alternatives(pattern: str) -> list[str]:
    """The pattern without braces, once for each choice."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    choices: list[str] = []
    for choice in found[1].split(","):
        choices.extend(_alternatives(before + choice + after))
        if len(choices) > _ALTERNATIVES:
            raise ToolError(f"The pattern has too many alternatives: {_ALTERNATIVES} at most.")
    return choices
