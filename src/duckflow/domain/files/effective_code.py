"""Tells changes of code from changes of comments and docstrings alone, which have no effect."""

import ast
import warnings
from pathlib import PurePosixPath

from duckflow.domain.patterns import lazy_regex

_HASH, _SLASHES = ("#",), ("//", "/*", "*/", "* ")
_COMMENTS = {
    **dict.fromkeys((".sh", ".rb", ".toml", ".yaml", ".yml", ".pl", ".r"), _HASH),
    **dict.fromkeys((".js", ".mjs", ".ts", ".jsx", ".tsx", ".go", ".rs", ".java", ".kt", ".swift"), _SLASHES),
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".php"), _SLASHES),
}
"""Beginnings of lines that are only a comment, by suffix."""
_TEXT_WANTED = lazy_regex(
    r"docstring|comment|document|\bdocs?\b|header|licen[sc]e|top of|first line|beginning|translat|english"
    r"|japanese|format|indent|\bstyle|pep ?8|\blint|blank|empty line|white ?space|line length|typo|spell"
    r"|readab|expla|descri|\bnotes?\b|\btodo|tidy|clean|pretty"
    r"|コメント|先頭|冒頭|ドックストリング|翻訳|英語|日本語|整形|フォーマット|インデント|空行|改行|スペース|空白|誤字|スペル"
    r"|読みやす|見やす|説明|注釈|ライセンス|きれい|綺麗|整え|整理|書式"
)


def wants_text_only(said: str) -> bool:
    """Return whether words may ask for comments, docstrings or another layout, which change no behaviour."""
    return _TEXT_WANTED.search(said.casefold()) is not None


def same_code(path: str, before: str, after: str) -> bool:
    """Return whether two versions of a file differ at most in comments, docstrings and blank lines."""
    if before == after:
        return True
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in (".py", ".pyi"):
        trees = [_tree(text) for text in (before, after)]
        return None not in trees and trees[0] == trees[1]
    marks = _COMMENTS.get(suffix)
    return marks is not None and _lines(before, marks) == _lines(after, marks)


def _tree(text: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about questionable code must not reach the user here
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for at, one in enumerate(node.body) if at or not _is_text(one)]
    return ast.dump(module)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _lines(text: str, marks: tuple[str, ...]) -> list[str]:
    lines = (line.rstrip() for line in text.split("\n"))
    return [line for line in lines if line and (line.startswith("#!") or not line.lstrip().startswith(marks))]
