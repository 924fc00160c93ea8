"""The house rules that a machine can check: sizes, shapes, names, and what may not stand in a file."""

import ast
import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from source_tree import PACKAGE, ROOT, Module, modules

FILE_LINES = 500
TURN_LINES = 200
MEDIAN_LINES = 160
FUNCTION_LINES = 60
NESTING = 3
ARGUMENTS = 6
METHODS = 15
BANNED_MODULES = {"utils", "util", "helpers", "helper", "managers", "manager", "common", "misc", "archive"}
BANNED_WORDS = ("Manager", "Handler", "Helper", "Simple", "Enhanced", "V2")
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Written in pieces, so that this file does not contain what it looks for.
REGISTRIES = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "npmjs" + ".com",
    "npmjs" + ".org",
    "anaconda" + ".org",
)
MACHINE_PATHS = (
    "/work" + "/main",
    "/work" + "/shared",
    "/opt" + "/wheels",
    "/opt" + "/pypi",
    "/tmp" + "/lab",
    ".." + "/shared",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(module: Module) -> Iterator[Function]:
    return (node for node in ast.walk(module.tree) if isinstance(node, FUNCTIONS))


def place(module: Module, node: Function | ast.ClassDef) -> str:
    return f"{module.name}:{node.lineno} {node.name}"


def depth(node: ast.AST) -> int:
    """How many blocks deep the deepest statement stands; an elif is no deeper than its if."""
    deepest = 0
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
                continue
            elif_branch = (
                isinstance(node, ast.If)
                and name == "orelse"
                and len(value) == 1
                and isinstance(child, ast.If)
            )
            own = isinstance(child, BLOCKS) and not elif_branch
            deepest = max(deepest, own + depth(child))
    return deepest


def argument_count(function: Function) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


@cache
def published_files() -> tuple[Path, ...]:
    """All files that are, or would be, under version control; every file where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
        return tuple(path for path in (ROOT / name for name in names) if path.is_file())
    found = (path for path in ROOT.rglob("*") if path.is_file())
    return tuple(path for path in found if not skipped(path.relative_to(ROOT)))


def skipped(relative: Path) -> bool:
    """Whether git would leave it out, by the names in .gitignore."""
    patterns = [line.rstrip("/") for line in text_of(ROOT / ".gitignore").splitlines() if line]
    return any(fnmatch(part, pattern) for part in relative.parts for pattern in (".git", *patterns))


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def test_no_python_file_is_too_long():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in published_files()
        if path.suffix == ".py" and (lines := text_of(path).count("\n")) > FILE_LINES
    }
    assert not long


def test_files_stay_small_on_the_whole():
    sizes = [module.text.count("\n") for module in modules() if module.path.name != "__init__.py"]
    assert median(sizes) <= MEDIAN_LINES


def test_the_loop_to_read_first_stays_short():
    turn = PACKAGE / "loops" / "turn.py"
    assert turn.read_text("utf-8").count("\n") < TURN_LINES


def test_functions_fit_on_a_screen():
    long = {
        place(module, function): lines
        for module in modules()
        for function in functions(module)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
    }
    assert not long


def test_functions_are_at_most_three_levels_deep():
    deep = {
        place(module, function): levels
        for module in modules()
        for function in functions(module)
        if (levels := depth(function)) > NESTING
    }
    assert not deep


def test_functions_take_at_most_six_arguments():
    """A command's function aside: its arguments are the command's flags."""
    many = {
        place(module, function): count
        for module in modules()
        for function in functions(module)
        if (count := argument_count(function)) > ARGUMENTS and not module.name.startswith("duckflow/cli")
    }
    assert not many


def test_classes_have_at_most_fifteen_methods():
    many = {
        place(module, node): count
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        and (count := sum(isinstance(member, FUNCTIONS) for member in node.body)) > METHODS
    }
    assert not many


def test_no_module_or_folder_has_a_name_that_says_nothing():
    named = {str(path) for module in modules() for path in [module.path.relative_to(PACKAGE)]}
    banned = {name for name in named if BANNED_MODULES & {Path(part).stem for part in Path(name).parts}}
    assert not banned


def test_no_class_has_a_name_that_says_nothing():
    banned = {
        place(module, node)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and any(word in node.name for word in BANNED_WORDS)
    }
    assert not banned


def test_every_module_says_what_it_is():
    silent = {module.name for module in modules() if not ast.get_docstring(module.tree)}
    assert not silent


def test_every_public_name_has_a_line_about_it():
    silent = {
        place(module, node)
        for module in modules()
        for node in module.tree.body
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    }
    assert not silent


def test_no_file_names_a_package_registry_or_a_path_of_one_machine():
    wrong = re.compile("|".join(re.escape(text) for text in (*REGISTRIES, *MACHINE_PATHS, f"{ROOT}/")))
    found = {
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path in published_files()
        for hit in wrong.finditer(text_of(path))
    }
    assert not found


def test_pins_have_hashes_and_no_addresses():
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        lines = text_of(path).splitlines()
        pins = [line for line in lines if line and not line.startswith((" ", "#"))]
        assert pins
        assert all("==" in pin and pin.endswith("\\") for pin in pins), path
        assert "://" not in text_of(path)
        assert not [line for line in lines if line.startswith("-")]


@pytest.mark.parametrize(
    ("source", "levels"),
    [
        ("def f():\n    return 1", 0),
        ("def f():\n if a:\n  pass\n elif b:\n  pass\n elif c:\n  pass", 1),
        ("def f():\n if a:\n  pass\n else:\n  if b:\n   pass\n  x()", 2),
        ("def f():\n for a in b:\n  try:\n   with c:\n    if d:\n     pass\n  except E:\n   pass", 4),
        ("def f():\n match a:\n  case 1:\n   if b:\n    pass", 2),
        ("def f():\n if a:\n  def g():\n   if b:\n    pass", 1),
    ],
)
def test_depth_is_counted_as_a_reader_sees_it(source, levels):
    assert depth(ast.parse(source).body[0]) == levels
