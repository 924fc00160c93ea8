"""File patterns: *.py matches anywhere, src/**/*.ts from the start, {a,b} either of two."""

import re
from collections.abc import Callable
from fnmatch import translate

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex

_ALTERNATIVES = 64
_LONGEST = 300
_NO_NAME = lazy_regex(r"(?!)")


def file_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a matcher for relative paths. A pattern without a slash applies to the name alone."""
    if len(pattern) > _LONGEST:
        raise ToolError(f"The pattern is too long: {_LONGEST} characters at most.")
    choices = [choice.removeprefix("./").strip("/").split("/") for choice in _alternatives(pattern)]
    compiled = [[_part(part) for part in choice] for choice in choices]

    def matches(path: str) -> bool:
        names = path.split("/")
        return any(_match(parts, names[-1:] if len(parts) == 1 else names) for parts in compiled)

    return matches


def _part(glob: str) -> re.Pattern[str] | None:
    """Compile one part of a pattern. None stands for ** (any number of folders)."""
    return None if glob == "**" else re.compile(translate(glob))


def _match(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """Match names. A ** takes as few folders as possible, and one more if the rest does not match."""
    part = name = behind_last = taken = 0
    while name < len(names):
        pattern = parts[part] if part < len(parts) else _NO_NAME
        if pattern is None:
            part += 1
            behind_last, taken = part, name
        elif pattern.match(names[name]):
            part, name = part + 1, name + 1
        elif behind_last:
            taken += 1
            part, name = behind_last, taken
        else:
            return False
    return not any(parts[part:])


def _alternatives(pattern: str) -> list[str]:
    """Expand braces: return one pattern for each choice."""
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
