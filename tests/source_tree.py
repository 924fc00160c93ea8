"""The program's own source, parsed once, for the tests that read it."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "duckflow"


class Module(NamedTuple):
    """One source file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Its path inside the package, for messages."""
        return str(self.path.relative_to(PACKAGE.parent))


@cache
def modules(folder: str = "") -> tuple[Module, ...]:
    """Every module of the package, or of a folder in it."""
    found = []
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        text = path.read_text("utf-8")
        found.append(Module(path, text, ast.parse(text, str(path))))
    return tuple(found)


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """What `ast.walk` gives; that takes half a second for all modules, and several tests want it."""
    return tuple(ast.walk(tree))


def called_name(call: ast.Call) -> str:
    """`text` for text(…) and catalogue.text(…); `console.print` also keeps its owner."""
    return ast.unparse(call.func)
