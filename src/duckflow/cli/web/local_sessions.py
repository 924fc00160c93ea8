"""Sessions of this machine for the web view. A command for a closed session opens it in this process."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, get_args

from duckflow.app.opening import Opening
from duckflow.app.places import LIVE, holder_of, open_kept_files, open_log
from duckflow.cli.secrets import redactor
from duckflow.cli.web.fleet_sessions import FleetSessions
from duckflow.config.loading import load_as_trusted
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.domain.commands import CancelWork, ClientCommand, SayMessage
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import StoredEvent
from duckflow.domain.modes import Mode
from duckflow.domain.session_client import SessionUpdate
from duckflow.i18n.catalogue import text
from duckflow.loops.session import Session
from duckflow.loops.undo.rewind import fork
from duckflow.loops.undo.undo import Undo
from duckflow.safety.files.workspace import Workspace
from duckflow.session.host import SessionHost
from duckflow.session.remote import leave_command
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.live_file import LiveView, live_path, read_live
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.output.escaping import harmless
from duckflow.ui.web.session_view import RUN_PREFIX

_LOOK_S = 0.15
_PATIENCE_S = 10.0
"""Seconds that a page waits for the result of a command."""
_LISTED = 100
_log = logging.getLogger(__name__)


class _Open(NamedTuple):
    """A session of this process, and the task that closes it when it is idle."""

    host: SessionHost
    serving: asyncio.Task[None]


class LocalSessions:
    """The sessions of this machine; some are open in this process."""

    def __init__(self, folder: Path, flags: dict[str, object], database: str | None = None) -> None:
        self._folder = folder
        self._flags = flags
        self._events = open_log()
        self._sessions = Sessions(self._events.database)
        self._inbox = CommandInbox(self._events.database)
        self._left = True
        self._open: dict[str, _Open] = {}
        self._opening = asyncio.Lock()
        self.changed = asyncio.Event()
        """Set, and replaced by a new event, when a session of this process changes."""
        self.fleet = FleetSessions(database)
        self.closing = asyncio.Event()

    def version(self) -> int:
        """Return a number that changes with every write to the database."""
        return self._events.database.version()

    def sessions(self) -> Sequence[dict[str, Any]]:
        """Return the data of each session for the list, with its status."""
        last = self._sessions.last_events()
        return [
            {
                "id": one.id,
                "title": harmless(one.title) or text("session.untitled"),
                "workspace": harmless(one.workspace),
                "updated": one.updated.isoformat(),
                "status": self._status(one.id, one.workspace, one.outcome, last.get(one.id, "")),
            }
            for one in self._own()[:_LISTED]
        ]

    def folders(self) -> Sequence[str]:
        """Return this folder and the existing folders of earlier sessions."""
        known = [one.workspace for one in self._own()]
        return list(dict.fromkeys([str(self._folder), *(one for one in known if Path(one).is_dir())]))

    def events(self, session_id: str, after: int) -> Sequence[StoredEvent]:
        """Return the events of a session with a number above `after`."""
        if session_id.startswith(RUN_PREFIX):
            return self.fleet.events(session_id.removeprefix(RUN_PREFIX), after)
        return self._events.load_after(session_id, after)

    def live(self, session_id: str) -> LiveView:
        """Return the text that a session is producing at the moment."""
        live = read_live(live_path(state_dir() / LIVE, session_id.removeprefix(RUN_PREFIX)))
        return LiveView(harmless(live.reply), harmless(live.output), live.wait_s, harmless(live.thinking))

    async def difference(self, session_id: str) -> str:
        """Return the diff of all changes that the session made to files."""
        if session_id.startswith(RUN_PREFIX):
            return await asyncio.to_thread(self.fleet.patch, session_id.removeprefix(RUN_PREFIX))
        found = self._show(session_id)
        session = await asyncio.to_thread(Session, self._events, found.id, redactor())
        with closing(Workspace(Path(found.workspace))) as space, closing(open_kept_files(Settings())) as kept:
            return await Undo(session, space, kept, self._events).diff(session=True)

    async def send(self, session_id: str, command: ClientCommand) -> str | None:
        """Send a command; return the reason if it is refused, else "", or None while it waits."""
        command = redactor().clean_all(command)  # because it may be stored (SAFETY 14)
        if session_id.startswith(RUN_PREFIX):
            run = session_id.removeprefix(RUN_PREFIX)
            return _worded(await asyncio.to_thread(self.fleet.send, run, command))
        found = self._show(session_id)
        if (ending := self._open.get(session_id)) is not None and ending.host.leaving:
            await asyncio.wait([ending.serving])
        if (opened := self._open.get(session_id)) is None and holder_of(found.workspace) == session_id:
            sent = asyncio.ensure_future(leave_command(self._inbox, session_id, command))
        elif opened is None and isinstance(command, CancelWork):
            return _worded("clients.nothing_runs")
        else:
            host = opened.host if opened else await self._take_up(session_id, Path(found.workspace))
            sent = host.send(command, guest=True).taken
        await asyncio.wait([sent], timeout=_PATIENCE_S)
        if sent.done():
            return _worded(sent.result())
        sent.cancel()
        return None

    async def start(self, folder: str, said: str, mode: str, *, queued: bool = False) -> str:
        """Open a session in a known folder and say something, or queue it; return the session's id."""
        known = [*self.folders(), *(await asyncio.to_thread(self.fleet.repositories) if queued else ())]
        if folder not in known or (mode and mode not in get_args(Mode)) or not said.strip():
            raise UsageError("web.unreadable")
        said = redactor().clean(said)
        if queued:
            options = {"mode": mode or None, "model": self._flags.get("llm.model")}
            return RUN_PREFIX + await asyncio.to_thread(self.fleet.submit, folder, said, options)
        flags = {**self._flags, "mode": mode or self._flags.get("mode")}
        async with self._opening:
            host = await self._open_host(Path(folder), None, flags)
        host.send(SayMessage(text=said), guest=True)
        return host.session_id

    def fork(self, session_id: str, before: int) -> str:
        """Return a new session that begins like this one, or as it was before a message."""
        return fork(self._events, self._show(session_id).id, before or None)

    def is_open(self, session_id: str) -> bool:
        """Return True if this process has the session open, so that its updates set `changed`."""
        return session_id in self._open

    async def serve_unowned(self) -> None:
        """Open sessions that have pending commands but no owner, until cancelled."""
        seen = -1
        while True:
            try:
                version = self.version()
                if self._left or version != seen:
                    self._left = await self._take_up_waiting()
                    seen = version
            except UserError as error:
                _log.warning("%s", text(error.key, **error.values))
            await asyncio.sleep(_LOOK_S)

    async def aclose(self) -> None:
        """Stop the work and close all sessions."""
        self.closing.set()
        serving = [one.serving for one in self._open.values()]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        self.fleet.close()
        self._events.close()

    def _own(self) -> Sequence[SessionSummary]:
        return [one for one in self._sessions.listed() if not one.is_run]

    def _show(self, session_id: str) -> SessionSummary:
        found = self._sessions.show(session_id)
        if found.is_run:
            raise UsageError("fleet.is_a_run", run=found.id)
        return found

    async def _take_up_waiting(self) -> bool:
        """Open sessions with waiting commands; return True if an already open session still has some."""
        left = False
        for session_id in self._inbox.sessions():
            found = self._sessions.show(session_id)
            if session_id in self._open or holder_of(found.workspace) == session_id:
                left = True
                continue
            waiting = self._inbox.waiting(session_id)
            for number, command in waiting:
                if isinstance(command, CancelWork):
                    self._inbox.settle(number, "clients.nothing_runs")
            if all(isinstance(one.command, CancelWork) for one in waiting):
                continue
            try:
                await self._take_up(session_id, Path(found.workspace))
            except UserError as error:
                if holder_of(found.workspace) == session_id:
                    continue  # another process was faster and will take the command
                for number, _ in self._inbox.waiting(session_id):
                    self._inbox.settle(number, text(error.key, **error.values))
        return left

    async def _take_up(self, session_id: str, folder: Path) -> SessionHost:
        async with self._opening:
            opened = self._open.get(session_id)
            if opened is not None:
                return opened.host
            return await self._open_host(folder, session_id, {**self._flags, "mode": None})

    async def _open_host(self, folder: Path, session_id: str | None, flags: dict[str, object]) -> SessionHost:
        """Open a session, after closing an idle one in the same folder.

        The page can't ask about trust, so a project's settings count only if the user trusts them already.
        """
        root = await asyncio.to_thread(folder.resolve)
        for one in [*self._open.values()]:
            if one.host.folder == root and one.host.leave():
                await asyncio.wait([one.serving])
        loaded = await asyncio.to_thread(load_as_trusted, folder, flags=flags)
        keeps_mode = flags.get("mode") is None
        opening = Opening(loaded, folder, session_id, attended=True, keeps_mode=keeps_mode)
        host = await SessionHost.open(opening, self._tell)
        self._open[host.session_id] = _Open(host, asyncio.ensure_future(self._serve(host)))
        return host

    async def _serve(self, host: SessionHost) -> None:
        try:
            await host.until_idle()
        finally:
            await host.aclose()
            self._open.pop(host.session_id, None)

    def _tell(self, _update: SessionUpdate) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def _status(self, session_id: str, workspace: str, outcome: str | None, last: str) -> str:
        waits = last in ("request_finished", "session_started", "approval_requested")
        if waits and outcome in ("awaiting_approval", "consultation", "not_satisfied"):
            return "asks"
        if holder_of(workspace) != session_id:
            return "rests"
        return "open" if last in ("request_finished", "session_started") else "works"


def _worded(objection: str) -> str:
    """Return an objection in words; another process may have sent a sentence instead of a key."""
    return text(objection) if objection.startswith("clients.") else objection
