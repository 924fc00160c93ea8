"""Finds the tests that belong to changed files, by name and folder, and the command for each. Pure."""

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from shlex import quote

from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex

MOST_TESTS = 8
"""Largest number of test files to run before a verdict, so that it stays fast."""

_NAMED = r"(?<![\w/.-]){path}((?:::[\w\[\].-]*\w\]?)*)(?![\w/-])"
"""A path, possibly followed by names of single tests."""

_FOLDERS = ("tests", "test", "__tests__", "spec")
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".mts")
_VITEST, _JEST = "node_modules/.bin/vitest run", "node_modules/.bin/jest --ci"
_LEFT_OUT = lazy_regex(r"--(?:deselect|ignore(?:-glob)?)[= ](\S+)")
"""Tests that a command in the request excludes."""

_FUNCTION = lazy_regex(r"(?<![\w/.:-])(test_\w+)(?![\w/:]|\.\w)", re.ASCII)
_DEFINED = lazy_regex(r"^class (?P<group>\w+)|^(?P<indent>[ \t]*)(?:async )?def (?P<name>\w+)", re.MULTILINE)

_SOURCES = 'PYTHONPATH="$([ -d src ] && echo src:)$PYTHONPATH" '
"""Makes tests use the code in `src` rather than an installed version."""


class RelatedTest(Frozen):
    """A file with tests, or a single test."""

    name: str
    """The file, or a single test in it as pytest names it (`tests/test_a.py::test_b`)."""
    source: str = ""
    of_itself: bool = False
    """True if only the test file has changed, but not the code that it tests."""

    @property
    def path(self) -> str:
        """The file with the test."""
        return self.name.partition("::")[0]


def is_test(path: str) -> bool:
    """Return whether a file holds tests, judging by its name."""
    stem, suffix = PurePosixPath(path).stem, PurePosixPath(path).suffix
    if suffix == ".py":
        return stem.startswith("test_") or stem.endswith("_test")
    if suffix == ".go":
        return stem.endswith("_test")
    return suffix in _SCRIPTS and stem.endswith((".test", ".spec"))


def related_tests(changed: Iterable[str], files: Collection[str]) -> tuple[RelatedTest, ...]:
    """Return the tests among `files` that belong to the changed files. A changed test belongs to itself."""
    found: dict[str, bool] = {}
    tests = sorted(path for path in files if is_test(path))
    for path in changed:
        itself = is_test(path) and path in files
        for test in [path] if itself else _of(path, tests):
            found[test] = itself and found.get(test, True)
    return tuple(RelatedTest(name=name, of_itself=itself) for name, itself in found.items())[:MOST_TESTS]


def named_tests(request: str, files: Iterable[str]) -> tuple[RelatedTest, ...]:
    """Return the tests that a request names by path: whole files or single tests (J3)."""
    request = _LEFT_OUT.sub(" ", request)
    tests = sorted(path for path in files if is_test(path) and path in request)
    found = (
        RelatedTest(name=f"{path}{single}")
        for path in tests
        for single in dict.fromkeys(re.findall(_NAMED.format(path=re.escape(path)), request, re.ASCII))
    )
    return tuple(found)[:MOST_TESTS]


def named_functions(request: str) -> frozenset[str]:
    """Return the names of test functions that a request mentions without their file."""
    return frozenset(_FUNCTION.findall(_LEFT_OUT.sub(" ", request)))


def tests_called(names: Collection[str], path: str, source: str) -> tuple[RelatedTest, ...]:
    """Return the tests with these names in a Python file."""
    found: list[str] = []
    group = ""
    for line in _DEFINED.finditer(source):
        group = f"::{line['group']}" if line["group"] else group if line["indent"] else ""
        if line["name"] in names:
            found.append(f"{path}{group}::{line['name']}")
    return tuple(RelatedTest(name=name) for name in found)


def left_out(request: str) -> frozenset[str]:
    """Return the test files that a command in the request ignores."""
    return frozenset(path for path in _LEFT_OUT.findall(request) if "::" not in path)


def likely_tests(changed: Iterable[str]) -> tuple[str, ...]:
    """Return paths where tests of these files may be, because the list of a large folder is incomplete."""
    files = [PurePosixPath(path) for path in changed]
    return tuple(
        str(place / name) for file in files for place in _next_to(file) for name in sorted(_test_names(file))
    )


def test_command(path: str, source: str, python: str) -> str:
    """Return the command that runs a file with tests; empty if unknown."""
    file, suffix = quote(path), PurePosixPath(path.partition("::")[0]).suffix
    if suffix == ".py":
        pytest = "import pytest" in source or "unittest" not in source or "::" in path
        runner = "pytest -q -x -p no:cacheprovider --no-header" if pytest else "unittest -q"
        return f"{_SOURCES}{python} -m {runner} {file}"
    if suffix == ".go":
        folder = PurePosixPath(path).parent.as_posix()
        return f"GOFLAGS=-mod=mod GOCACHE=$TMPDIR/go go test {quote('./' + folder)}"
    if suffix not in _SCRIPTS:
        return ""
    if "node:test" in source and suffix not in (".ts", ".tsx", ".mts"):
        return f"node --test {file}"
    if "vitest" in source or "jest" in source:
        return f"{_VITEST if 'vitest' in source else _JEST} {file}"
    return f"if [ -x {_VITEST.partition(' ')[0]} ]; then {_VITEST} {file}; else {_JEST} {file}; fi"


def _of(path: str, tests: Iterable[str]) -> list[str]:
    """Return the tests that fit a file's name: beside it, or in a folder named like the file's folder."""
    file = PurePosixPath(path)
    names = _test_names(file)
    same = [test for test in tests if PurePosixPath(test).name in names]
    near = [test for test in same if PurePosixPath(test).parent in _next_to(file)]
    alike = [test for test in same if file.parent.name in PurePosixPath(test).parts]
    return near or alike or (same if len(same) == 1 else [])


def _next_to(file: PurePosixPath) -> tuple[PurePosixPath, ...]:
    return (file.parent, *(file.parent / name for name in _FOLDERS))


def _test_names(file: PurePosixPath) -> frozenset[str]:
    stem, suffix = file.stem, file.suffix
    if suffix == ".py":
        return frozenset((f"test_{stem}.py", f"{stem}_test.py", f"test_{stem.strip('_')}.py"))
    if suffix == ".go":
        return frozenset((f"{stem}_test.go",))
    if suffix in _SCRIPTS:
        return frozenset(f"{stem}.{kind}{end}" for kind in ("test", "spec") for end in _SCRIPTS)
    return frozenset()
