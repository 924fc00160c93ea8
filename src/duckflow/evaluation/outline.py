"""What a Python file defines, by name, and what of it is only a stub."""

import ast
from collections.abc import Iterable

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def defined_names(tree: ast.Module) -> tuple[str, ...]:
    """Functions and classes on the top level, a class with its methods."""
    return tuple(_named(node) for node in tree.body if isinstance(node, (*_FUNCTIONS, ast.ClassDef)))


def stub_names(tree: ast.Module) -> tuple[str, ...]:
    """Functions and methods that do nothing: `pass`, or an error that says so."""
    functions = (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))
    return tuple(dict.fromkeys(node.name for node in functions if _does_nothing(node.body)))


def _named(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if not isinstance(node, ast.ClassDef):
        return node.name
    methods = ", ".join(_methods(node.body))
    return f"class {node.name} ({methods})" if methods else f"class {node.name}"


def _methods(body: Iterable[ast.stmt]) -> Iterable[str]:
    return (node.name for node in body if isinstance(node, _FUNCTIONS))


def _does_nothing(body: list[ast.stmt]) -> bool:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest] if rest:
            return _does_nothing(rest)
        case [ast.Pass()]:
            return True
        case [
            ast.Raise(
                exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))
            )
        ]:
            return True
        case _:
            return False
