"""Tool file_ops.outline: a line for each definition in a file, without the bodies."""

import json
import pkgutil
import sys
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from duckflow.domain.errors import ToolError
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.editing.text_form import plain
from duckflow.tools.files.reading import OneFile, suggesting
from duckflow.tools.searching.ripgrep import run_capped

LINES_SHOWN = 400
ROLES = ("space", "type", "function", "value", "hidden")
"""Roles of definitions, explained in grammars.toml."""

_PROGRAM = Path(__file__).with_name("definition_finder.py")


async def _run(args: OneFile, access: Access) -> ToolResult:
    path = access.workspace.relative(args.path)
    text = await run_in_thread(_read, access.workspace, path)
    said = await _outline(path, text) if text else "(empty)"
    return ToolResult(text=f"{path} {said}", path=path)


def _read(workspace: Workspace, path: str) -> str:
    with suggesting(workspace, path):
        return plain(workspace.read_text(path))


async def _outline(path: str, text: str) -> str:
    """Return the outline of a text. Raise ToolError if its type is unknown or the parser fails."""
    language = languages().get(PurePosixPath(path).suffix.lower())
    if language is None:
        raise ToolError(f"{path}: there is no outline of this type of file; use file_ops.read_file.")
    asked = {"text": text, "language": language, "rules": rules_of(language), "most": LINES_SHOWN}
    with suppress(ToolError):  # it took too long, or the parser crashed
        end = await run_capped([sys.executable, "-I", str(_PROGRAM)], given=json.dumps(asked).encode())
        if end.exit_code == 0:
            return end.output.decode()
    raise ToolError(f"{path}: can't be parsed; use file_ops.read_file.")


@cache
def languages() -> dict[str, str]:
    """Return the language of each suffix."""
    return {suffix: name for name, grammar in _grammars().items() for suffix in grammar["suffixes"]}


def rules_of(language: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rules that find nodes in a syntax tree, by role, including those of the base language."""
    grammar = _grammars()[language]
    base = rules_of(grammar["base"]) if "base" in grammar else {}
    return {role: [*base.get(role, ()), *map(_rule, grammar.get(role, ()))] for role in ROLES}


def _rule(given: str | dict[str, Any]) -> dict[str, Any]:
    return {"kind": given} if isinstance(given, str) else given


@cache
def _grammars() -> dict[str, dict[str, Any]]:
    data = pkgutil.get_data("duckflow.tools.outline", "grammars.toml")
    assert data is not None
    return tomllib.loads(data.decode())


OUTLINE = Tool(
    operation="file_ops.outline",
    args=OneFile,
    summary="what path defines, by line",
    effect="read",
    run=_run,
    targets=lambda args: (args.path,),
)
