"""Every id of a promise in the code leads to its entry in docs/contract.md, and tests prove what is built."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from duckflow.tools.toolset import file_tools
from fakes.rows import every_row
from source_tree import ROOT

ID = re.compile(r"(?<![A-Za-z0-9])([A-O]\d{1,2})(?![A-Za-z0-9])|SAFETY[ _](\d+)(?!\d)")
ENTRY = re.compile(
    r'(?m)^<a id="([\w-]+)"></a>\*\*([A-O]\d+|SAFETY \d+) · [^*]+?\.?\*\*(?: \*(\(planned\))\*\.)? \S'
)
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
USER_PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    if page.name not in {"AGENTS.md", "CONTRIBUTING.md", "architecture.md", "contract.md", "benchmarks.md"}
]
"""Pages for users; the one about benchmarks names processors, which look like ids."""


@cache
def entries() -> dict[str, bool]:
    """Every promise, and whether it is planned."""
    page = (ROOT / "docs" / "contract.md").read_text("utf-8")
    return {match[2]: bool(match[3]) for match in ENTRY.finditer(page)}


def ids_in(text: str) -> set[str]:
    return {f"SAFETY {number}" if number else plain for plain, number in ID.findall(text)}


def prose(source: str) -> Iterator[str]:
    """Comments, docstrings and names of functions: where a promise is named. Data is left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name.replace("_", " ")
        body = getattr(node, "body", None)
        for line in body if isinstance(body, list) else ():
            if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
                yield str(line.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@cache
def prose_of(path: Path) -> str:
    return "\n".join(prose(path.read_text("utf-8")))


@cache
def named_in(folder: str) -> dict[str, set[str]]:
    """Ids by the files below a folder that name them."""
    found: dict[str, set[str]] = {}
    for path in sorted({*(ROOT / folder).rglob("*.py")} - {Path(__file__)}):
        if ID.search(path.read_text("utf-8").replace("_", " ")):
            for name in ids_in(prose_of(path)):
                found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def test_ids_are_found_in_names_docstrings_and_comments_and_not_in_data():
    source = '''
"""About (A6, M3)."""
def test_SAFETY_14_and_J10_hold():  # G1
    codes = ["F63", "E9"]
    """K2."""
'''
    assert ids_in("\n".join(prose(source))) == {"A6", "M3", "SAFETY 14", "J10", "G1", "K2"}


@every_row("folder", ["src", "tests"])
def test_every_id_in_the_code_leads_to_an_entry(folder: str):
    named = named_in(folder)
    assert len(named) > 80
    assert not {name: files for name, files in named.items() if name not in entries()}


@every_row("folder", ["src", "tests", "scripts", "bench"])
def test_an_id_stands_without_the_name_of_another_document(folder: str):
    named = re.compile(r"\b(?!SAFETY)[A-Z]{3,} (?:[A-O]\d{1,2})\b")
    files = {*(ROOT / folder).rglob("*.py")} - {Path(__file__)}
    assert not {
        path.name: hits
        for path in files
        if named.search(path.read_text("utf-8")) and (hits := named.findall(prose_of(path)))
    }


def test_every_promise_that_is_not_planned_is_named_by_a_test():
    proven = named_in("tests")
    assert not [name for name, planned in entries().items() if not planned and name not in proven]


def test_every_entry_has_an_anchor_of_its_own_that_follows_from_its_id():
    page = (ROOT / "docs" / "contract.md").read_text("utf-8")
    assert len(entries()) == len(re.findall(r"(?m)^<a id=.*?\*\*(?:[A-O]\d|SAFETY \d)", page)) > 100
    anchors = ANCHOR.findall(page)
    assert len(anchors) == len(set(anchors))
    assert [match[1] for match in ENTRY.finditer(page)] == [
        name.lower().replace(" ", "-") for name in entries()
    ]


@every_row("page", USER_PAGES, ids=lambda page: page.name)
def test_pages_for_users_name_no_ids(page: Path):
    assert not ids_in(page.read_text("utf-8"))


def test_file_operations_are_listed_with_their_arguments():
    """N."""
    page = (ROOT / "docs" / "contract.md").read_text("utf-8")
    listed = dict(re.findall(r"`(file_ops\.\w+)\((.*?)\)`", page))
    assert listed == {
        tool.operation: ", ".join(
            name if field.is_required() else f"{name}?" for name, field in tool.args.model_fields.items()
        )
        for tool in file_tools(None)
    }
