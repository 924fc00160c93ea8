"""Lists of files without those that the project ignores, and the tool file_ops.list_files."""

import os
import re
from collections import Counter
from collections.abc import Callable
from fnmatch import translate
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.files.access import Access
from duckflow.safety.files.listing import SKIPPED, names_skipped
from duckflow.safety.files.temporary import is_temporary
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.searching.ripgrep import run_ripgrep

_ALTERNATIVES = 64
_LONGEST = 300
_NO_NAME = lazy_regex(r"(?!)")


def file_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a matcher for relative paths. A pattern without a slash applies to the name alone."""
    if len(pattern) > _LONGEST:
        raise ToolError(f"The pattern is too long: {_LONGEST} characters at most.")
    choices = [choice.removeprefix("./").strip("/").split("/") for choice in _alternatives(pattern)]
    # None stands for ** (any number of folders).
    compiled = [
        [None if part == "**" else re.compile(translate(part)) for part in choice] for choice in choices
    ]

    def matches(path: str) -> bool:
        names = path.split("/")
        return any(_match(parts, names[-1:] if len(parts) == 1 else names) for parts in compiled)

    return matches


def _match(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """Return True if the names match. A ** takes as few folders as possible, and more only if needed."""
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
    before, *braces = re.split(r"\{([^{}]*)\}", pattern, maxsplit=1)
    if not braces:
        return [pattern]
    choices: list[str] = []
    for choice in braces[0].split(","):
        choices.extend(_alternatives(before + choice + braces[1]))
        if len(choices) > _ALTERNATIVES:
            raise ToolError(f"The pattern has too many alternatives: {_ALTERNATIVES} at most.")
    return choices


DEEPEST = 24
LINES_SHOWN = 400
DEPTH = 3
_MOST = 50_000


class ListFiles(Frozen):
    """Arguments of file_ops.list_files."""

    path: str = Field(default=".", description="the folder, relative to the workspace")
    pattern: str | None = Field(
        default=None, description="only files that match, such as *.py or src/**/*.ts"
    )
    depth: int | None = Field(default=None, ge=1, description="levels of folders to show; 3 unless told")


class Inventory(NamedTuple):
    """Paths of files, relative to the workspace. `complete` is False if a limit cut the list."""

    files: list[str]
    complete: bool


async def list_all(workspace: Workspace, ripgrep: Path | None, folder: str) -> Inventory:
    """List the files below a folder, without SKIPPED folders and, with ripgrep, without ignored files."""
    if ripgrep is None:
        skip = () if names_skipped(folder) else SKIPPED
        found = await run_in_thread(workspace.list, folder, depth=DEEPEST, limit=_MOST, skip=skip)
        return Inventory([entry.path for entry in found.entries if entry.kind == "file"], found.complete)
    output = await run_ripgrep(ripgrep, workspace.root, ["--files", *skip_arguments(folder)], folder)
    paths = [os.fsdecode(name).removeprefix("./") for name in output.output.split(b"\0")[:-1]]
    files = [path for path in paths if not is_temporary(path.rpartition("/")[2])]
    return Inventory(files, output.complete)


def skip_arguments(path: str) -> list[str]:
    """Return the arguments that keep ripgrep out of skipped folders, unless `path` names one."""
    return [] if names_skipped(path) else [f"--glob=!{name}" for name in sorted(SKIPPED)]


def list_tool(ripgrep: Path | None) -> Tool[ListFiles]:
    """Return file_ops.list_files, which uses ripgrep if it is available."""

    async def run(args: ListFiles, access: Access) -> ToolResult:
        workspace = access.workspace
        folder = workspace.relative(args.path, folder=True)
        there = await run_in_thread(workspace.status, folder)
        if there is None or there.kind != "folder":
            raise ToolError(
                f"{folder}: {'is a file, not' if there else 'there is no such'} folder.",
                "reason.no_folder",
                path=folder,
            )
        inventory = await list_all(workspace, ripgrep, folder)
        return ToolResult(text=await run_in_thread(_show, workspace, folder, inventory, args))

    return Tool(
        operation="file_ops.list_files",
        args=ListFiles,
        summary="files below path that match pattern, depth folders deep",
        effect="read",
        run=run,
        targets=lambda args: (args.path,),
    )


def _show(workspace: Workspace, folder: str, inventory: Inventory, args: ListFiles) -> str:
    files = inventory.files
    if args.pattern is not None:
        matches = file_matcher(args.pattern)
        base = "" if folder == "." else folder + "/"
        files = [file for file in files if matches(file) or matches(file.removeprefix(base))]
    unbounded = args.pattern is not None and args.depth is None
    rows = list(_fold(files, folder, DEEPEST if unbounded else args.depth or DEPTH).items())
    lines = [
        f"{printable(path)} ({count} files)" if path.endswith("/") else printable(path)
        for path, count in rows[:LINES_SHOWN]
        if _inside(workspace, path)
    ]
    where = "the workspace" if folder == "." else folder
    what = f"files that match {args.pattern}" if args.pattern is not None else "files"
    head = f"{where}: {len(files)} {what}{'' if inventory.complete else ' or more'}"
    if len(rows) > LINES_SHOWN:
        more = len(rows) - LINES_SHOWN
        lines.append(f"… {more} more lines; give a folder, a pattern or a smaller depth")
    return "\n".join([head, *lines])


def _inside(workspace: Workspace, path: str) -> bool:
    """Return True if the path is in the workspace; a folder swapped for a link may lead ripgrep out."""
    try:
        return workspace.status(path) is not None
    except ToolError:
        return False


def _fold(files: list[str], folder: str, depth: int) -> Counter[str]:
    """Return the rows of a list: files, and folders at `depth` (with a final slash) with file counts."""
    above = 0 if folder == "." else folder.count("/") + 1
    rows: Counter[str] = Counter()
    for file in sorted(files, key=lambda path: path.split("/")):
        parts = file.split("/")
        deep = len(parts) > above + depth
        rows["/".join(parts[: above + depth]) + "/" if deep else file] += 1
    return rows
