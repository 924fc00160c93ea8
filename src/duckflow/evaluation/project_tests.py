"""Finds the command that tests a project, and remembers whether the user wants it run (J3).

The command is derived from files in the top folder, without running any code of the project. It is only used
after the user has agreed.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from fnmatch import fnmatch

from pydantic import BaseModel, Field

from duckflow.config.saved_answers import SavedAnswers
from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace

MEMORY = "tests.json"

_READ = 200_000
_LISTED = 500
_PYTEST = "python3 -m pytest -q"
_OWN_PYTHON = ".venv/bin/python"
_TEST_FILES = ("test_*.py", "*_test.py")
"""Names of tests placed beside the code they test."""


class ProjectTests:
    """The tests of the project in a workspace. Blocking, like the workspace it reads."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._memory = SavedAnswers(MEMORY)

    def find(self) -> str:
        """Return the project's test command; empty if none can be determined."""
        names = self._names()
        for name, command in _WAYS:
            if name in names and (found := command(self._text(name), names)):
                return self._started_here(found)
        beside = any(fnmatch(name, pattern) for name in names for pattern in _TEST_FILES)
        return self._started_here(_PYTEST if beside else "")

    def wanted(self, command: str) -> bool | None:
        """Return whether the user wants this command run; None if they were not asked about it."""
        known = self._memory.load().get(str(self._workspace.root), "")
        if known in (f"yes {command}", f"no {command}"):
            return known.startswith("yes")
        return None

    def remember(self, command: str, *, wanted: bool) -> None:
        """Store the user's answer."""
        word = "yes" if wanted else "no"
        self._memory.save({**self._memory.load(), str(self._workspace.root): f"{word} {command}"})

    def _started_here(self, command: str) -> str:
        """Use the project's own Python if it has one, because its libraries are installed there."""
        own = command == _PYTEST and os.access(self._workspace.root / _OWN_PYTHON, os.X_OK)
        return command.replace("python3", _OWN_PYTHON) if own else command

    def _names(self) -> frozenset[str]:
        listing = self._workspace.list(".", depth=1, limit=_LISTED)
        return frozenset(entry.path.rstrip("/") for entry in listing.entries)

    def _text(self, name: str) -> str:
        try:
            return self._workspace.read_bytes(name, cap=_READ).decode("utf-8", "replace")
        except ToolError:
            return ""


def _make(text: str, _names: frozenset[str]) -> str:
    return "make test" if any(line.startswith("test:") for line in text.splitlines()) else ""


class _Package(BaseModel):
    """The relevant part of a package.json."""

    scripts: dict[str, str] = Field(default_factory=dict)


def _npm(text: str, _names: frozenset[str]) -> str:
    try:
        said = _Package.model_validate_json(text).scripts.get("test", "")
    except ValueError:
        return ""
    return "npm test" if said and "no test specified" not in said else ""


def _pyproject(text: str, names: frozenset[str]) -> str:
    try:
        tools: Mapping[str, object] = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    return _PYTEST if "pytest" in tools or names & {"tests", "test"} else ""


def _python_folder(_text: str, names: frozenset[str]) -> str:
    python = any(name.endswith(".py") for name in names) or bool(names & {"src", "setup.py", "setup.cfg"})
    return _PYTEST if python else ""


def _always(command: str) -> Callable[[str, frozenset[str]], str]:
    return lambda _text, _names: command


_WAYS: tuple[tuple[str, Callable[[str, frozenset[str]], str]], ...] = (
    ("Makefile", _make),
    ("makefile", _make),
    ("package.json", _npm),
    ("pytest.ini", _always(_PYTEST)),
    ("tox.ini", _python_folder),
    ("pyproject.toml", _pyproject),
    ("Cargo.toml", _always("cargo test")),
    ("go.mod", _always("go test ./...")),
    ("mix.exs", _always("mix test")),
    ("gradlew", _always("./gradlew test")),
    ("pom.xml", _always("mvn -q test")),
    ("tests", _python_folder),
    ("test", _python_folder),
)
"""Files that indicate the test command, in search order, and how to derive it."""
