"""How a project is tested, by the files at its top; and whether the user wants that run (SPEC J3).

Nothing of the project is run to find out. What is found only acts once the user has said yes, or never.
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
"""Tests that lie beside what they test."""


class ProjectTests:
    """The tests of the project in a workspace. Blocking, like the workspace it looks through."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._memory = SavedAnswers(MEMORY)

    def find(self) -> str:
        """The command that tests it; empty if none can be told."""
        names = self._names()
        for name, command in _WAYS:
            if name in names and (found := command(self._text(name), names)):
                return self._started_here(found)
        beside = any(fnmatch(name, pattern) for name in names for pattern in _TEST_FILES)
        return self._started_here(_PYTEST if beside else "")

    def wanted(self, command: str) -> bool | None:
        """Whether the user wants it run; None if they were not asked about this very command."""
        known = self._memory.load().get(str(self._workspace.root), "")
        if known in (f"yes {command}", f"no {command}"):
            return known.startswith("yes")
        return None

    def remember(self, command: str, *, wanted: bool) -> None:
        """Write down what the user said."""
        word = "yes" if wanted else "no"
        self._memory.save({**self._memory.load(), str(self._workspace.root): f"{word} {command}"})

    def _started_here(self, command: str) -> str:
        """With the project's own Python, if it has one: that is where its libraries are."""
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
    """What counts of a package.json."""

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
"""By which file it can be told, in the order looked for, and how."""
