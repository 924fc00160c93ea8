"""Find matching lines, with ripgrep or else with a small program of Duckflow's own.

Both only say where to look. The text shown is read through the workspace, so that a folder swapped for a link
during the search reveals nothing.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.searching import line_matcher
from duckflow.tools.searching.listing import file_matcher, list_all, skip_arguments
from duckflow.tools.searching.ripgrep import BadPattern, run_capped, run_ripgrep

FILE_CAP = 4_000_000
"""Largest file, in bytes, that is searched."""

_PLAIN_FILE, _PLAIN_TOTAL = 1_000_000, 20_000_000


class Query(NamedTuple):
    """Pattern to search for, and the place. `path` is a file or a folder."""

    pattern: str
    path: str
    glob: str | None
    literal: bool = False
    """True if the pattern is plain text and not a regular expression."""


class Hit(NamedTuple):
    """Matching line, from 1, and the column of its first match, from 0."""

    line: int
    column: int


class Hits(NamedTuple):
    """Matching lines by file. `complete` is False if a limit ended the search."""

    files: dict[str, list[Hit]]
    complete: bool
    in_bytes: bool = False
    """True if columns count bytes of UTF-8 and not characters."""


async def ask_ripgrep(workspace: Workspace, binary: Path, query: Query) -> Hits:
    """Search with ripgrep, which is fast and knows the files that a project ignores."""
    arguments = [
        "--line-number",
        "--column",
        "--with-filename",
        "--no-heading",
        "--crlf",
        f"--max-count={line_matcher.LINES_PER_FILE}",
        "--max-columns=1",  # the line number is enough
        f"--max-filesize={FILE_CAP}",
        *([f"--glob={query.glob}"] if query.glob else []),
        *skip_arguments(query.path),
        *(["--fixed-strings"] if query.literal else []),
        f"--regexp={query.pattern}",
    ]
    output = await run_ripgrep(binary, workspace.root, arguments, query.path)
    return Hits(_by_file(_rows(output.data)), output.complete, in_bytes=True)


async def ask_ourselves(workspace: Workspace, query: Query, ripgrep: Path | None = None) -> Hits:
    """Search with Python's regular expressions, which is slower. `ripgrep` lists the files, if given."""
    there = await run_in_thread(workspace.status, query.path)
    files, complete = [query.path], True
    if there and there.kind == "folder":
        files, complete = await list_all(workspace, ripgrep, query.path)
    if query.glob:
        files = list(filter(file_matcher(query.glob), files))
    texts, whole = await run_in_thread(_texts, workspace, files)
    pattern = re.escape(query.pattern) if query.literal else query.pattern
    question = json.dumps({"pattern": pattern, "texts": texts}).encode()
    output = await run_capped([sys.executable, "-I", line_matcher.__file__], given=question)
    answer: dict[str, Any] = json.loads(output.data) if output.data else {"error": output.error}
    if "error" in answer:
        raise BadPattern(answer["error"])
    return Hits(_by_file((name, Hit(*hit)) for name, *hit in answer["found"]), complete and whole)


def _rows(data: bytes) -> Iterator[tuple[str, Hit]]:
    for row in data.split(b"\n"):
        name, _, rest = row.partition(b"\0")
        number, column, *_ = *rest.split(b":", 2), b"", b""
        if number.isdigit():
            hit = Hit(int(number), int(column) - 1 if column.isdigit() else 0)
            yield os.fsdecode(name).removeprefix("./"), hit


def _by_file(found: Iterator[tuple[str, Hit]]) -> dict[str, list[Hit]]:
    files: dict[str, list[Hit]] = {}
    for path, hit in found:
        files.setdefault(path, []).append(hit)
    return files


def _texts(workspace: Workspace, files: list[str]) -> tuple[dict[str, str], bool]:
    texts: dict[str, str] = {}
    left = _PLAIN_TOTAL
    for file in files:
        try:
            data = workspace.read_bytes(file, cap=_PLAIN_FILE)
        except ToolError:
            continue  # a link, a pipe, or too large: nothing to search
        left -= len(data)
        if left < 0:
            return texts, False
        if b"\0" not in data:
            texts[file] = data.decode(errors="replace")
    return texts, True
