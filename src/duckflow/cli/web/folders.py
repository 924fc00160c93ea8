"""Folders for the web view: their files, the content of a file, and what the start page says about them."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from duckflow.app.models import choose
from duckflow.config.loading import load_as_trusted
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.domain.commands import SessionCommand, SessionResult
from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.extensions import Extensions
from duckflow.domain.session_client import EarlierSession, PastMessage, SessionClient, SessionUpdate
from duckflow.domain.state import AgentState, new_state
from duckflow.domain.work.memory import Memory
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.i18n.catalogue import text
from duckflow.llm.default_model import list_models
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace
from duckflow.ui.output.escaping import harmless, visible
from duckflow.ui.web.markup import code_node
from duckflow.ui.web.session_view import Payload

_DEPTH = 8
_MOST_FILES = 5_000
_MOST_LISTED = 500
_CODE = (".py", ".ts", ".js", ".go", ".rs", ".java", ".c", ".cpp", ".rb")
_RULES = ("AGENTS.md", "CLAUDE.md")
_LARGEST = 400_000
"""Largest file, in bytes, that the page shows."""


class FolderReader(SessionClient):
    """A folder before a session is open there: enough of a session to complete names while the user types."""

    def __init__(
        self, files: Sequence[str], models: Sequence[str], sessions: Sequence[EarlierSession]
    ) -> None:
        self._files = files
        self._models = models
        self._sessions = sessions

    @property
    def state(self) -> AgentState:
        """An empty state."""
        return new_state("")

    @property
    def extensions(self) -> Extensions:
        """None, because they are read when a session opens."""
        return Extensions()

    @property
    def busy(self) -> bool:
        """False, because nothing is open."""
        return False

    def send(self, command: SessionCommand) -> Awaitable[SessionResult]:  # noqa: ARG002 - as the protocol
        """Refuse the command, because nothing is open."""
        raise UsageError("web.unreadable")

    async def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield nothing."""
        return
        yield

    def messages(self) -> Sequence[PastMessage]:
        """Return nothing."""
        return ()

    def memories(self) -> Sequence[Memory]:
        """Return nothing."""
        return ()

    def files(self) -> Sequence[str]:
        """Return the files of the folder."""
        return self._files

    def models(self) -> Sequence[str]:
        """Return the models to suggest."""
        return self._models

    def sessions(self) -> Sequence[EarlierSession]:
        """Return the earlier sessions."""
        return self._sessions


def file_names(folder: str) -> Sequence[str]:
    """Return the names of the files in a folder, as far as they are listed. Blocking."""
    try:
        with closing(_opened(folder)) as space:
            found = space.list(".", depth=_DEPTH, limit=_MOST_FILES, skip=SKIPPED)
    except (ToolError, UsageError):
        return ()
    return [one.path for one in found.entries if one.kind == "file"]


def folder_listing(folder: str, path: str) -> Payload:
    """Return the entries of a folder in the workspace, folders first. Blocking."""
    try:
        with closing(_opened(folder)) as space:
            found = space.list(path or ".", depth=1, limit=_MOST_LISTED, skip=SKIPPED)
    except ToolError as error:
        raise UsageError("web.files.unreadable", path=path) from error
    entries = sorted(found.entries, key=lambda one: (one.kind != "folder", one.path.casefold()))
    listed = [
        {
            "path": harmless(one.path),
            "name": harmless(one.path.rpartition("/")[2]),
            "folder": one.kind == "folder",
        }
        for one in entries
        if one.kind in ("file", "folder")
    ]
    return {"path": path, "entries": listed, "complete": found.complete}


def file_content(folder: str, path: str) -> Payload:
    """Return a file as coloured code. Blocking."""
    try:
        with closing(_opened(folder)) as space:
            content = space.read_text(path, cap=_LARGEST)
    except ToolError as error:
        raise UsageError("web.files.unreadable", path=path) from error
    return {
        "path": visible(path),
        "code": code_node(visible(content), path=path),
        "lines": content.count("\n") + (not content.endswith("\n")),
    }


async def start_facts(folder: str, flags: Mapping[str, object]) -> Payload:
    """Return what the start page says about a folder: model, models to choose, facts, first requests."""
    loaded = await asyncio.to_thread(load_as_trusted, Path(folder), flags=flags)
    llm = loaded.settings.llm
    model = (await choose(loaded.settings, os.environ)).name
    listed = await list_models(os.environ)
    models = list(dict.fromkeys(one for one in (model, llm.fast, *listed, llm.embedded.full_name) if one))
    names, tests = await asyncio.to_thread(_look, folder)
    return {
        "model": harmless(model),
        "models": [harmless(one) for one in models],
        "mode": loaded.settings.mode,
        "facts": _facts(names, tests),
        "requests": _requests(names, tests),
    }


def _look(folder: str) -> tuple[Sequence[str], str]:
    """Return the names in the folder and its test command. Blocking."""
    try:
        with closing(_opened(folder)) as space:
            names = [one.path for one in space.list(".", depth=2, limit=_MOST_LISTED, skip=SKIPPED).entries]
            return names, ProjectTests(space).find()
    except (ToolError, UsageError):
        return (), ""


def _facts(names: Sequence[str], tests: str) -> list[str]:
    rules = [name for name in _RULES if name in names]
    return [
        text("start.rules", files=", ".join(rules)) if rules else text("start.no_rules"),
        text("start.tests", command=tests) if tests else text("start.no_tests"),
    ]


def _requests(names: Sequence[str], tests: str) -> list[str]:
    """Return a few first requests that suit the folder."""
    code = next(
        (name for name in names if name.endswith(_CODE) and "__" not in name and "test" not in name), ""
    )
    if not names:
        return [text("web.start.create"), text("web.start.plan")]
    found = [text("web.start.explain")]
    found += [text("web.start.file", file=harmless(code))] if code else []
    found += [text("web.start.tests")] if tests else []
    return [*found, text("web.start.review")]


def _opened(folder: str) -> Workspace:
    return Workspace(Path(folder), denied=(state_dir(), config_dir(), cache_dir()))
