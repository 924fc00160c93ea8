"""Small program that finds the lines of texts that match a pattern. JSON in, JSON out.

It runs in a separate process, because a pattern can keep Python's `re` busy forever and only a process can be
stopped. It imports nothing of Duckflow.
"""

import json
import re
import sys
from itertools import islice

LINES_PER_FILE = 1_000


def match_lines(pattern: str, texts: dict[str, str]) -> list[tuple[str, int, int]]:
    """Return (path, line number, column) of the matching lines, up to a limit for each file."""
    compiled = re.compile(pattern)
    found: list[tuple[str, int, int]] = []
    for path, text in texts.items():
        lines = enumerate(text.split("\n"), 1)
        matches = ((number, compiled.search(line.rstrip("\r"))) for number, line in lines)
        hits = ((path, number, match.start()) for number, match in matches if match)
        found.extend(islice(hits, LINES_PER_FILE))
    return found


if __name__ == "__main__":
    given = json.load(sys.stdin)
    try:
        answer: object = {"found": match_lines(given["pattern"], given["texts"])}
    except (re.error, RecursionError, OverflowError) as exc:
        answer = {"error": str(exc)}
    json.dump(answer, sys.stdout)
