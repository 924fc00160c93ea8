"""The lines of a command's output that say what failed, in whatever words its tool says so."""

import re

from duckflow.domain.text import cut

MOST_LINES = 5

_LINE = 200
_TELLING = re.compile(
    r"(?:^|[\s\[(])(?:FAIL|FAILED|ERROR|Error|not ok|error|panicked|✗|✕|✘|×)(?=[\s:\])(]|\b)"
)
_COUNT = re.compile(r"^[=\s-]*\d+ (?:failed|passed|errors?)\b")


def failing_lines(output: str) -> tuple[str, ...]:
    """The lines that name what failed; where none can be told, the last ones."""
    lines = [cut(" ".join(line.split()), _LINE) for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line) and not _COUNT.match(line)]
    named = [
        line for line in telling if "FAILED" in line or "--- FAIL" in line or "not ok" in line
    ] or telling
    return tuple(dict.fromkeys(named or lines[-MOST_LINES:]))[:MOST_LINES]
