"""file_ops.outline: what a file defines, a line each, without the bodies."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut
from duckflow.safety.workspace import Workspace
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.grammar_table import languages, rules_of
from duckflow.tools.reading import no_change
from duckflow.tools.ripgrep import run_capped
from duckflow.tools.sections import LEVELS, Section, markdown_headings, toml_tables
from duckflow.tools.suggestions import suggesting
from duckflow.tools.text_form import plain
from duckflow.tools.threads import finish

LINES_SHOWN = 400
WIDTH = 120
_DEEPEST = 12
_FINDER = Path(__file__).with_name("definition_finder.py")

Finder = Callable[[list[str]], Iterator[Section]]
"""Finds the sections in the lines of a text."""

_SECTIONS: dict[str, Finder] = {
    ".md": markdown_headings,
    ".markdown": markdown_headings,
    ".mdx": markdown_headings,
    ".toml": toml_tables,
}


class Outline(Frozen):
    """What outline takes."""

    path: str = Field(description="the file, relative to the workspace")


class Row(NamedTuple):
    """One line of an outline: which lines of the file it stands for, how deep it is, what it says."""

    first: int
    last: int
    depth: int
    text: str


class Found(NamedTuple):
    """What there is in a file, and how many more; `damaged` is the first line that could not be parsed."""

    rows: list[Row]
    more: int = 0
    complete: bool = True
    damaged: int | None = None


def outline_tool(workspace: Workspace) -> Tool:
    """The tool for one workspace."""

    async def run(args: Outline) -> ToolResult:
        path = workspace.relative(args.path)
        text = await finish(_read, workspace, path)
        if not text:
            return ToolResult(text=f"{path} (empty)", path=path)
        found = await _find(path, text)
        return ToolResult(text=_show(path, text, found), path=path)

    return Tool(
        operation="file_ops.outline",
        args=Outline,
        summary="what path defines, by line",
        effect="read",
        run=run,
        preview=no_change,
        targets=lambda args: (args.path,),
    )


def _read(workspace: Workspace, path: str) -> str:
    with suggesting(workspace, path):
        return plain(workspace.read_text(path))


async def _find(path: str, text: str) -> Found:
    suffix = PurePosixPath(path).suffix.lower()
    if sections := _SECTIONS.get(suffix):
        return await finish(_sections, sections, text)
    language = languages().get(suffix)
    if language is None:
        raise ToolError(f"{path}: there is no outline of this type of file; use file_ops.read_file.")
    asked = {"text": text, "language": language, "rules": rules_of(language), "most": LINES_SHOWN}
    try:
        output = await run_capped([sys.executable, "-I", str(_FINDER)], given=json.dumps(asked).encode())
        answer: dict[str, Any] = json.loads(output.data)
    except (ToolError, ValueError) as exc:  # it took too long, or the parser gave up on it
        raise ToolError(f"{path}: can't be parsed; use file_ops.read_file.") from exc
    answer["rows"] = [Row(*row) for row in answer["rows"]]
    return Found(**answer)


def _sections(find: Finder, text: str) -> Found:
    """Each section with its last line: the one before the next that is not inside it."""
    rows: list[Row] = []
    begins = [_count(text) + 1] * LEVELS
    for line, depth, said in reversed(list(find(text.split("\n")))):
        rows.append(Row(line, min(begins[: depth + 1]) - 1, depth, said))
        begins[depth] = line
    rows.reverse()
    return Found(rows[:LINES_SHOWN], more=len(rows[LINES_SHOWN:]))


def _show(path: str, text: str, found: Found) -> str:
    notes = [f"outline of {_count(text)} lines"]
    if found.damaged:
        notes.append(f"line {found.damaged} can't be parsed, something may be missing")
    if not found.rows:
        notes.append("nothing is defined here")
    lines = [_line(row) for row in found.rows]
    if found.more or not found.complete:
        lines.append(f"… {found.more}{'' if found.complete else ' or more'} are left out")
    return "\n".join([f"{path} ({'; '.join(notes)})", *lines])


def _line(row: Row) -> str:
    place = f"{row.first}-{row.last}" if row.last > row.first else f"{row.first}"
    return f"{place}: {'  ' * min(row.depth, _DEEPEST)}{cut(row.text, WIDTH)}"


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
