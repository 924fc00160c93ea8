"""What a Python file defines, by name."""

import ast
from collections.abc import Iterable

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def defined_names(tree: ast.Module) -> tuple[str, ...]:
    """Functions and classes on the top level, a class with its methods."""
    return tuple(_named(node) for node in tree.body if isinstance(node, (*_FUNCTIONS, ast.ClassDef)))


def _named(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if not isinstance(node, ast.ClassDef):
        return node.name
    methods = ", ".join(_methods(node.body))
    return f"class {node.name} ({methods})" if methods else f"class {node.name}"


def _methods(body: Iterable[ast.stmt]) -> Iterable[str]:
    return (node.name for node in body if isinstance(node, _FUNCTIONS))
