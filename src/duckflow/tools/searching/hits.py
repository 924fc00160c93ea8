"""Matching lines as text for the model: some of each file, their number, and what was left out.

The lines are read through the workspace, so a folder swapped for a link during the search reveals nothing.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.text import some_of
from duckflow.prompts.shortening import fair_shares
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable
from duckflow.safety.policy.protected import STRENGTH
from duckflow.safety.redaction.patterns import lines_with_secrets
from duckflow.tools.searching.line_matcher import LINES_PER_FILE

FILE_CAP = 4_000_000
"""Largest file, in bytes, that is searched."""

LINES_SHOWN = 200
"""Maximum rows of a result, including the lines around hits."""

FILES_SHOWN = 60
COLUMNS_SHOWN = 400
_FILES_READ, _BYTES_READ = 1_000, 50_000_000
_LINES_NAMED, _FILES_NAMED = 10, 20
"""Numbers of lines and files to name if their lines are not shown."""

_BEFORE_MATCH = 80
_WITHHELD = "(a line with a key or token)"


class Hit(NamedTuple):
    """Number of a matching line, from 1, and the column of its first match, from 0, in bytes of UTF-8."""

    line: int
    column: int


class Hits(NamedTuple):
    """Matching lines by file. `complete` is False if a limit ended the search."""

    files: dict[str, list[Hit]]
    complete: bool


class _FileHits(NamedTuple):
    """Lines of one file that may be shown. Those in `withheld` are never shown."""

    path: str
    lines: Sequence[str]
    hits: Sequence[Hit]
    withheld: frozenset[int]

    @property
    def number(self) -> str:
        """Number of matching lines, with a + if there may be more."""
        return f"{len(self.hits)}{'+' if len(self.hits) >= LINES_PER_FILE else ''}"


def show_hits(workspace: Workspace, found: Hits, permitted: int, context: int) -> str:
    """Return the hits by file, empty if none may be shown. Skips files protected more than `permitted`."""
    files: list[_FileHits] = []
    left = _BYTES_READ
    for path, hits in list(found.files.items())[:_FILES_READ]:
        if left < 0:
            break
        one, size = _read(workspace, path, hits, permitted)
        left -= size
        files += [one] if one is not None else []
    if not files:
        return ""
    whole = found.complete and left >= 0 and len(found.files) <= _FILES_READ
    shown = files[:FILES_SHOWN]
    shares = fair_shares([len(_rows(one, len(one.hits), context)) for one in shown], LINES_SHOWN)
    parts = [_show(one, share, context) for one, share in zip(shown, shares, strict=True)]
    return "\n".join([_head(files, whole=whole), *parts, *_more(files[FILES_SHOWN:])])


def _head(files: Sequence[_FileHits], *, whole: bool) -> str:
    lines = sum(len(one.hits) for one in files)
    least = "" if whole and all(len(one.hits) < LINES_PER_FILE for one in files) else "at least "
    return (
        f"{least}{lines} matching line{'s' * (lines != 1)} in {len(files)} file{'s' * (len(files) != 1)}"
        f"{'' if whole else '; there are more files: narrow it down'}"
    )


def _more(rest: Sequence[_FileHits]) -> list[str]:
    """Name the files of which no line is shown."""
    if not rest:
        return []
    named = some_of([f"{one.path} ({one.number})" for one in rest], _FILES_NAMED)
    return [f"Not shown, {len(rest)} more file{'s' * (len(rest) != 1)}: {named}"]


def _read(
    workspace: Workspace, path: str, hits: Sequence[Hit], permitted: int
) -> tuple[_FileHits | None, int]:
    """Return the hits of a file that may be shown, or None, and the number of bytes read."""
    try:
        if STRENGTH[workspace.protection(path)] > permitted:
            return None, 0
        data = workspace.read_bytes(path, cap=FILE_CAP)
    except ToolError:
        return None, 0  # removed, or no longer inside the workspace
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = data.decode(encoding, errors="replace")
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    withheld = lines_with_secrets(text)
    visible = [hit for hit in hits if hit.line <= len(lines) and hit.line not in withheld]
    return (_FileHits(printable(path), lines, visible, withheld) if visible else None), len(data)


def _show(file: _FileHits, share: int, context: int) -> str:
    counts = range(1, len(file.hits) + 1)
    count = max(bisect_right(counts, share, key=lambda count: len(_rows(file, count, context))), 1)
    rows = _rows(file, count, context)
    rest = file.hits[count:]
    head = (
        f"{file.path} ({file.number} line{'s' * (len(file.hits) != 1)}{f', {count} shown' if rest else ''})"
    )
    if rest:
        named = ", ".join(str(hit.line) for hit in rest[:_LINES_NAMED])
        more = ", …" if len(rest) > _LINES_NAMED else ""
        rows.append(f"… {len(rest)} more in {file.path}, line{'s' * (len(rest) > 1)} {named}{more}")
    return "\n".join([head, *rows])


def _rows(file: _FileHits, count: int, context: int) -> list[str]:
    """Return the rows of the first `count` hits with the lines around them, in the format of grep."""
    hits = {hit.line: hit.column for hit in file.hits[:count]}
    wanted = {
        near
        for line in hits
        for near in range(max(line - context, 1), min(line + context, len(file.lines)) + 1)
    }
    rows: list[str] = []
    before = 0
    for number in sorted(wanted):
        if context and rows and number > before + 1:
            rows.append("--")
        before = number
        line = _WITHHELD if number in file.withheld else file.lines[number - 1]
        rows.append(f"{number}{':' if number in hits else '-'}{_around(line, hits.get(number, 0))}")
    return rows


def _around(line: str, column: int) -> str:
    """Return the part of a long line around a column. Its beginning is cut if the match is far in."""
    if len(line) <= COLUMNS_SHOWN:
        return line.rstrip()
    column = len(line.encode()[:column].decode(errors="ignore"))
    start = max(min(column - _BEFORE_MATCH, len(line) - COLUMNS_SHOWN), 0)
    end = start + COLUMNS_SHOWN
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
