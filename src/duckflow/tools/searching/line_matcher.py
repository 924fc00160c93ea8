"""Small program that finds the lines of texts that match a pattern. It reads JSON and prints like ripgrep.

It runs in a separate process, because a pattern can keep Python's `re` busy forever and only a process can be
stopped. It imports nothing of Duckflow.
"""

import json
import os
import re
import sys
from itertools import islice

LINES_PER_FILE = 1_000


def match_lines(pattern: re.Pattern[str], path: str, text: str) -> bytes:
    """Return rows with the path, line number and column in bytes of the matching lines, up to a limit."""
    lines = enumerate(text.split("\n"), 1)
    matches = ((number, pattern.search(line.rstrip("\r"))) for number, line in lines)
    hits = ((number, match.string[: match.start()]) for number, match in matches if match)
    rows = (f"\0{number}:{len(before.encode()) + 1}:\n" for number, before in islice(hits, LINES_PER_FILE))
    return b"".join(os.fsencode(path) + row.encode() for row in rows)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    try:
        compiled = re.compile(given["pattern"])
    except (re.error, RecursionError, OverflowError) as exc:
        sys.exit(f"regex parse error:\nerror: {exc}")
    for file, content in given["texts"].items():
        sys.stdout.buffer.write(match_lines(compiled, file, content))
