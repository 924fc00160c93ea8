"""Tool file_ops.search, with ripgrep or else with a small program of Duckflow's own."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import STRENGTH
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.programs import ProgramEnd
from duckflow.tools.searching import line_matcher
from duckflow.tools.searching.hits import FILE_CAP, Hit, Hits, show_hits
from duckflow.tools.searching.listing import file_matcher, list_all, skip_arguments
from duckflow.tools.searching.ripgrep import BadPattern, run_capped, run_ripgrep

LONGEST_PATTERN = 1000
MOST_CONTEXT = 20
_PLAIN_FILE, _PLAIN_TOTAL = 1_000_000, 20_000_000
"""Most bytes that Python's regular expressions search: in one file, and in all files together."""

_ERROR = "error: "
_NOT_SEARCHED = "protected files, and lines that hold a key or token, are not searched"


class Search(Frozen):
    """Arguments of file_ops.search."""

    pattern: str = Field(description="a regular expression, matched line by line")
    path: str = Field(default=".", description="the folder or file to search, relative to the workspace")
    glob: str | None = Field(default=None, description="only files that match, such as *.py")
    context: int = Field(default=0, ge=0, description="lines to show around each match")

    @field_validator("pattern", "glob")
    @classmethod
    def _fit_for_a_command_line(cls, value: str | None) -> str | None:
        # Checked here, because limits on the field would make a small model's grammar huge.
        if value == "":
            raise ValueError("is empty")
        if value and len(value) > LONGEST_PATTERN:
            raise ValueError(f"has {len(value)} characters, {LONGEST_PATTERN} at most")
        if value and any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError("may not contain NUL or half a surrogate pair")
        return value


def search_tool(ripgrep: Path | None) -> Tool[Any]:
    """Return file_ops.search, which uses ripgrep if it is available."""

    async def run(args: Search, access: Access) -> ToolResult:
        workspace = access.workspace
        path = workspace.relative(args.path, folder=True)
        there = await run_in_thread(workspace.status, path)
        if there is None or there.kind == "other":
            raise ToolError(
                f"{path}: {'can not be searched' if there else 'does not exist'}.",
                "reason.unusable" if there else "reason.missing",
                path=path,
            )
        hits, note = await _find(workspace, ripgrep, args.model_copy(update={"path": path}))
        permitted = max(STRENGTH["guarded"], STRENGTH[workspace.protection(path)])
        shown = await run_in_thread(show_hits, workspace, hits, permitted, min(args.context, MOST_CONTEXT))
        nothing = f"no line matches {args.pattern} in {path} ({_NOT_SEARCHED})"
        return ToolResult(text="\n".join(filter(None, (note, shown or nothing))))

    return Tool(
        operation="file_ops.search",
        args=Search,
        summary="lines that match the regex pattern in path and glob, with context lines",
        effect="read",
        run=run,
        targets=lambda args: (args.path,),
    )


async def _find(workspace: Workspace, ripgrep: Path | None, args: Search) -> tuple[Hits, str]:
    """Return the hits, and a note if the pattern is no regular expression and was searched as plain text."""
    try:
        return await find_lines(workspace, ripgrep, args), ""
    except BadPattern as exc:
        if "not supported" in str(exc):  # by ripgrep: look-around and back references
            return await _ask_python(workspace, ripgrep, args), ""
        lines = str(exc).splitlines()
        reason = next((line for line in lines if line.startswith(_ERROR)), lines[0]).removeprefix(_ERROR)
    note = f"{args.pattern} is no regular expression ({reason}), so it was searched as plain text."
    literal = args.model_copy(update={"pattern": re.escape(args.pattern)})
    return await find_lines(workspace, ripgrep, literal), note


async def find_lines(workspace: Workspace, ripgrep: Path | None, args: Search) -> Hits:
    """Return the matching lines: found by ripgrep, which knows what a project ignores, else by Python."""
    if ripgrep is None:
        return await _ask_python(workspace, ripgrep, args)
    arguments = [
        "--line-number",
        "--column",
        "--with-filename",
        "--no-heading",
        "--crlf",
        f"--max-count={line_matcher.LINES_PER_FILE}",
        "--max-columns=1",  # the line number is enough
        f"--max-filesize={FILE_CAP}",
        *([f"--glob={args.glob}"] if args.glob else []),
        *skip_arguments(args.path),
        f"--regexp={args.pattern}",
    ]
    return _hits(await run_ripgrep(ripgrep, workspace.root, arguments, args.path))


async def _ask_python(workspace: Workspace, ripgrep: Path | None, args: Search) -> Hits:
    """Search with Python's regular expressions, which is slower. `ripgrep` lists the files, if given."""
    there = await run_in_thread(workspace.status, args.path)
    files, complete = [args.path], True
    if there and there.kind == "folder":
        files, complete = await list_all(workspace, ripgrep, args.path)
    if args.glob:
        files = list(filter(file_matcher(args.glob), files))
    texts, whole = await run_in_thread(_texts, workspace, files)
    question = json.dumps({"pattern": args.pattern, "texts": texts}).encode()
    found = await run_capped([sys.executable, "-I", line_matcher.__file__], given=question)
    return _hits(found, complete=complete and whole)


def _hits(found: ProgramEnd, *, complete: bool = True) -> Hits:
    files: dict[str, list[Hit]] = {}
    for row in found.output.split(b"\n"):
        name, _, rest = row.partition(b"\0")
        number, column, *_ = *rest.split(b":", 2), b"", b""
        if number.isdigit():
            hit = Hit(int(number), int(column) - 1 if column.isdigit() else 0)
            files.setdefault(os.fsdecode(name).removeprefix("./"), []).append(hit)
    return Hits(files, complete and found.complete)


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
