"""What the pages name is there: files, folders and modules of the project."""

import re
from pathlib import Path

import duckflow
from source_tree import PACKAGE, ROOT

FOR_DEVELOPERS = (ROOT / "AGENTS.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md")
PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "bench").glob("*.md"))
NAMED = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.\w+)?|[\w/-]+\.py)`")
LAYOUT = re.compile(r"(?ms)^    src/duckflow/\n.*?(?=^\S)")
FOLDER = re.compile(r"(?<![\w/])([a-z_]+(?:/[a-z_]+)*/)(?=[\s(),:;])")
MODULE = re.compile(
    r"(?:\bfrom |\bimport |`)(duckflow\.(?:domain|config|llm|loops|tools|ui|api|plugins)(?:\.[a-z_]+)*)\b"
)


EXPORTED = re.compile(
    r"^from duckflow import (?:\(([^)]*)\)|([\w, ]*))$|`duckflow\.([A-Z]\w+)`", re.MULTILINE
)


def is_there(name: str) -> bool:
    """A path from the project's folder, the package or the tests, or the end of one in the package."""
    return any((base / name).exists() for base in (ROOT, PACKAGE, ROOT / "tests")) or any(PACKAGE.rglob(name))


def is_module(dotted: str) -> bool:
    """A module, or a name that one may have."""
    path = ROOT / "src" / Path(*dotted.split("."))
    return path.is_dir() or any(one.with_suffix(".py").is_file() for one in (path, path.parent))


def test_files_and_folders_that_developers_are_sent_to_exist():
    found = [(page.name, name) for page in FOR_DEVELOPERS for name in NAMED.findall(page.read_text("utf-8"))]
    [layout] = LAYOUT.findall(FOR_DEVELOPERS[0].read_text("utf-8"))
    found += [("AGENTS.md", name) for name in FOLDER.findall(layout)]
    assert len(found) > 80
    assert not [pair for pair in found if not is_there(pair[1])]


def test_modules_that_pages_name_exist():
    found = [(page.name, name) for page in PAGES for name in MODULE.findall(page.read_text("utf-8"))]
    assert len(found) > 1
    assert not [pair for pair in found if not is_module(pair[1])]


def test_names_that_pages_import_are_exported():
    found = [
        (page.name, name)
        for page in PAGES
        for names in EXPORTED.findall(page.read_text("utf-8"))
        for name in re.findall(r"[A-Za-z]\w+", " ".join(names))
    ]
    assert len(found) > 5
    assert not [pair for pair in found if pair[1] not in duckflow.__all__]
