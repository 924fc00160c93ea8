"""Closing words for the work of a small model, which announces its work but has no words for the end (M1)."""

import ast
from collections.abc import Sequence
from pathlib import PurePosixPath
from shlex import quote

from duckflow.domain.errors import ToolError
from duckflow.evaluation.related_tests import is_test
from duckflow.i18n.catalogue import text
from duckflow.loops.thinking.spelled_out import waits_for_input
from duckflow.safety.files.workspace import Workspace

_RUNNERS = {".py": "python3", ".sh": "sh", ".js": "node", ".rb": "ruby"}
_PAGES = (".html", ".htm")


def how_to_try(workspace: Workspace, changed: Sequence[str]) -> str:
    """Return a sentence about how the user can try what was written but not tested. Blocking."""
    code = [path for path in reversed(changed) if PurePosixPath(path).suffix in (*_RUNNERS, *_PAGES)]
    path = next((one for one in code if not is_test(one)), None)
    if path is None:
        return text("settled.written", path=changed[-1]) if changed else ""
    suffix = PurePosixPath(path).suffix
    if suffix in _PAGES:
        return text("settled.try_browser", path=path)
    try:
        program = workspace.read_text(path)
    except ToolError:
        program = ""
    if suffix == ".py" and not _does_something(program):
        return text("settled.try_test", path=path)
    key = "try_terminal" if waits_for_input(program) else "try_command"
    return text(f"settled.{key}", command=f"{_RUNNERS[suffix]} {quote(path)}")


def _does_something(program: str) -> bool:
    """Return whether a Python file does more than to define and import things when it is run."""
    try:
        body = ast.parse(program).body
    except (SyntaxError, ValueError):
        return False
    return any(
        isinstance(one, ast.If | ast.For | ast.While | ast.With | ast.Try) or _calls(one) for one in body
    )


def _calls(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
