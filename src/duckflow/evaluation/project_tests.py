"""Finds the command that tests a project, and remembers whether the user wants it run (J3)."""

import json
import os
import tomllib
from collections.abc import Collection, Iterator
from fnmatch import fnmatch

from duckflow.config.saved_answers import SavedAnswers
from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace

MEMORY = "tests.json"

_READ = 200_000
_LISTED = 500
_PYTEST = "python3 -m pytest -q"
_OWN_PYTHON = ".venv/bin/python"
_TEST_FILES = ("test_*.py", "*_test.py")


class ProjectTests:
    """Tests of the project in a workspace. Blocking."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._memory = SavedAnswers(MEMORY)

    def find(self) -> str:
        """Return the project's test command; empty if none can be determined."""
        listing = self._workspace.list(".", depth=1, limit=_LISTED)
        names = frozenset(entry.path.rstrip("/") for entry in listing.entries)
        command = next(self._commands(names), "")
        own = command == _PYTEST and os.access(self._workspace.root / _OWN_PYTHON, os.X_OK)
        return command.replace("python3", _OWN_PYTHON) if own else command

    def _commands(self, names: Collection[str]) -> Iterator[str]:
        """Yield the commands that files in the top folder suggest, the most certain first."""
        python = any(name.endswith(".py") or name in ("src", "setup.py", "setup.cfg") for name in names)
        tests = "tests" in names or "test" in names
        for name in ("Makefile", "makefile"):
            if name in names and any(line.startswith("test:") for line in self._text(name).splitlines()):
                yield "make test"
        if "package.json" in names and _has_test_script(self._text("package.json")):
            yield "npm test"
        if "pytest.ini" in names or ("tox.ini" in names and python):
            yield _PYTEST
        if "pyproject.toml" in names and (tests or _configures_pytest(self._text("pyproject.toml"))):
            yield _PYTEST
        yield from (command for name, command in _OTHERS.items() if name in names)
        if (tests and python) or any(fnmatch(one, pattern) for one in names for pattern in _TEST_FILES):
            yield _PYTEST

    def wanted(self, command: str) -> bool | None:
        """Return whether the user wants this command run; None if they were not asked about it."""
        known = self._memory.load().get(str(self._workspace.root), "")
        return {f"yes {command}": True, f"no {command}": False}.get(known)

    def remember(self, command: str, *, wanted: bool) -> None:
        """Store the user's answer."""
        word = "yes" if wanted else "no"
        self._memory.save({**self._memory.load(), str(self._workspace.root): f"{word} {command}"})

    def _text(self, name: str) -> str:
        try:
            return self._workspace.read_bytes(name, cap=_READ).decode("utf-8", "replace")
        except ToolError:
            return ""


def _has_test_script(package: str) -> bool:
    try:
        script = json.loads(package)["scripts"]["test"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
    return isinstance(script, str) and script != "" and "no test specified" not in script


def _configures_pytest(pyproject: str) -> bool:
    try:
        return "pytest" in tomllib.loads(pyproject).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


_OTHERS = {
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "mix.exs": "mix test",
    "gradlew": "./gradlew test",
    "pom.xml": "mvn -q test",
}
