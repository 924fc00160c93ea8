"""Adds imports that a small model forgets: it uses `random.choice(…)` or `pytest.raises(…)` without one."""

import ast
import sys
import warnings
from collections.abc import Iterator
from itertools import takewhile

_MODULES = sys.stdlib_module_names | {"pytest"}
"""Modules that a file may use without saying where they come from: those of Python, and that of its tests."""


def with_imports(path: str, content: str) -> str:
    """Return a Python file with an import for each known module that it uses and does not define."""
    if not path.endswith(".py"):
        return content
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about questionable code must not reach the user here
        try:
            module = ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return content
    nodes = list(ast.walk(module))
    defined = {name for node in nodes for name in _names_defined(node)}
    missing = sorted({name for node in nodes for name in _module_used(node)} - defined)
    if not missing or "*" in defined:
        return content
    lines, imports = content.split("\n"), [f"import {name}" for name in missing]
    at = _place(module) or len(list(takewhile(lambda line: line.startswith("#"), lines)))
    before, after = lines[:at], lines[at:]
    if before and not before[-1].startswith(("import ", "from ")):
        imports.insert(0, "")
    if after[0].strip() and not after[0].startswith(("import ", "from ")):
        imports += ["", ""] if after[0].startswith(("def ", "class ", "async ", "@")) else [""]
    return "\n".join([*before, *imports, *after])


def _module_used(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _MODULES:
        yield node.value.id


def _names_defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines, wherever in the file they count."""
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)
        case ast.Name(ctx=ast.Store() | ast.Del(), id=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global() | ast.Nonlocal():
            yield from node.names
        case _:
            pass


def _place(module: ast.Module) -> int:
    """Return the last line of the docstring and of imports from `__future__`, 0 without any."""
    place = 0
    for at, node in enumerate(module.body):
        docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            break
        place = node.end_lineno or node.lineno
    return place
