"""What protects the design and a machine can check. What good code looks like otherwise is for readers."""

import ast
import re
import subprocess
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from source_tree import PACKAGE, ROOT, Module, modules, nodes

FILE_LINES = 500
TURN_LINES = 200
BANNED_MODULES = {"utils", "util", "helpers", "helper", "managers", "manager", "common", "misc", "archive"}
BANNED_WORDS = ("Manager", "Handler", "Helper", "Simple", "Enhanced", "V2")
UPWARD = {"duckflow.domain.errors": {"duckflow.i18n.catalogue"}}
"""The one import that points up: `str(error)` is a sentence of the catalogue."""
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


def place(module: Module, node: ast.stmt) -> str:
    return f"{module.name}:{node.lineno} {getattr(node, 'name', '')}"


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


def test_the_loop_to_read_first_stays_short():
    turn = PACKAGE / "loops" / "turn.py"
    assert turn.read_text("utf-8").count("\n") < TURN_LINES


def test_no_class_name_stands_for_two_things():
    found: dict[str, list[str]] = {}
    for module in modules():
        for node in nodes(module.tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(place(module, node))
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_modules_do_not_import_each_other_in_a_circle():
    """Folder layers are import-linter's; this looks at single modules, also at imports inside functions."""
    names = {dotted(module) for module in modules()}
    imports = {dotted(module): imported(module, names) for module in modules()}
    assert not circles(imports)


def test_folders_side_by_side_do_not_import_each_other_in_a_circle():
    """A folder and what is in it are one; two rooms of it point one way."""
    names = {dotted(module) for module in modules()}
    folders = {
        dotted(module): ".".join(module.path.parent.relative_to(PACKAGE).parts) for module in modules()
    }
    imports: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for module in modules():
        here, wanted = folders[dotted(module)], imported(module, names) - UPWARD.get(dotted(module), set())
        imports[here] |= {there for name in wanted if apart(here, there := folders[name])}
    assert not circles(imports)


def apart(here: str, there: str) -> bool:
    return (
        not f"{here}.".startswith(f"{there}.")
        and not f"{there}.".startswith(f"{here}.")
        and bool(here and there)
    )


def dotted(module: Module) -> str:
    return module.name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def imported(module: Module, names: set[str]) -> set[str]:
    found = set()
    for node in nodes(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & names) - {"duckflow"}


def circles(imports: dict[str, set[str]]) -> set[str]:
    """What is left when everything that imports nothing that is left has been taken away, again and again."""
    left = dict(imports)
    while free := [name for name, wanted in left.items() if not wanted & (left.keys() - {name})]:
        for name in free:
            del left[name]
    return set(left)


def test_no_module_or_folder_has_a_name_that_says_nothing():
    named = {str(path) for module in modules() for path in [module.path.relative_to(PACKAGE)]}
    banned = {name for name in named if BANNED_MODULES & {Path(part).stem for part in Path(name).parts}}
    assert not banned


def test_no_class_has_a_name_that_says_nothing():
    banned = {
        place(module, node)
        for module in modules()
        for node in nodes(module.tree)
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


def test_a_circle_would_be_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == {"a", "b", "c", "d"}
    assert not circles({"a": {"b"}, "b": set()})
