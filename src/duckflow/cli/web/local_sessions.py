"""The sessions of this machine for the web view: read along in the database, asked through their inboxes.

Whoever has a session open takes what is asked of it. If nobody has, this process opens it and works.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, get_args

from duckflow.app.places import LIVE, holder_of, open_kept_files, open_log
from duckflow.cli.secrets import redactor
from duckflow.cli.web.fleet_sessions import FleetSessions
from duckflow.cli.web.worker import SessionWorker
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.domain.commands import CancelWork, ClientCommand, SayMessage
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import Recorded
from duckflow.domain.modes import Mode
from duckflow.i18n.catalogue import text
from duckflow.loops.session import Session
from duckflow.loops.undo.earlier_sessions import EarlierChanges
from duckflow.loops.undo.rewind import fork, past_messages
from duckflow.loops.undo.undo import Undo
from duckflow.safety.files.workspace import Workspace
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.live_file import live_path, read_live
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.output.escaping import harmless
from duckflow.ui.web.session_view import RUN

_LOOK_S = 0.15
_PATIENCE_S = 10.0
"""How long a page waits to hear what became of its wish."""
_LISTED = 100
_log = logging.getLogger(__name__)


class _Working(NamedTuple):
    """A session that is open in this process."""

    worker: SessionWorker
    task: asyncio.Task[None]


class LocalSessions:
    """The sessions of this machine, whoever has them open."""

    def __init__(self, folder: Path, flags: dict[str, object], database: str | None = None) -> None:
        self._folder = folder
        self._flags = flags
        self._events = open_log()
        self._sessions = Sessions(self._events.database)
        self._inbox = CommandInbox(self._events.database)
        self._waits = True
        self._working: dict[str, _Working] = {}
        self.fleet = FleetSessions(database)
        self.closing = asyncio.Event()

    def version(self) -> int:
        """A number that is another one once something was written, here or elsewhere."""
        return self._events.database.version()

    def sessions(self) -> Sequence[dict[str, Any]]:
        """A line about each session, and whether it works or waits for the user."""
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
        """This one, and those that earlier sessions worked in."""
        known = [one.workspace for one in self._own()]
        return list(dict.fromkeys([str(self._folder), *(one for one in known if Path(one).is_dir())]))

    def events(self, session_id: str, after: int) -> Sequence[Recorded]:
        """What happened in a session after an event."""
        if session_id.startswith(RUN):
            return self.fleet.events(session_id.removeprefix(RUN), after)
        return self._events.load_after(session_id, after)

    def live(self, session_id: str) -> tuple[str, str, int, str]:
        """What is being written: a reply, output of a command, seconds to wait, thinking."""
        reply, output, wait_s, thinking = read_live(
            live_path(state_dir() / LIVE, session_id.removeprefix(RUN))
        )
        return harmless(reply), harmless(output), wait_s, harmless(thinking)

    async def difference(self, session_id: str) -> str:
        """What the session changed in files, as it is now."""
        if session_id.startswith(RUN):
            return await asyncio.to_thread(self.fleet.patch, session_id.removeprefix(RUN))
        found = self._show(session_id)
        session = await asyncio.to_thread(Session.load, self._events, found.id, redactor())
        with closing(Workspace(Path(found.workspace))) as space, closing(open_kept_files(Settings())) as kept:
            earlier = EarlierChanges(self._events, str(space.root))
            return await Undo(session, space, kept, earlier).diff(session=True)

    async def send(self, session_id: str, command: ClientCommand) -> str | None:
        """Leave a command; empty if it was taken, why not, or None while it waits its turn."""
        command = redactor().clean_all(command)  # as it may be stored (SAFETY 14)
        if session_id.startswith(RUN):
            run = session_id.removeprefix(RUN)
            objection = await asyncio.to_thread(self.fleet.send, run, command)
            return text(objection) if objection else ""
        number = self._inbox.put(self._show(session_id).id, command)
        if not number:
            return text("web.too_many")
        self._waits = True
        for _ in range(int(_PATIENCE_S / _LOOK_S)):
            result = self._inbox.result(number)
            if result is not None:
                return text(result) if result.startswith("clients.") else result
            await asyncio.sleep(_LOOK_S)
        return None

    async def start(self, folder: str, said: str, mode: str, *, queued: bool = False) -> str:
        """Open a session in one of the known folders and say something, or queue it; its id."""
        known = [*self.folders(), *(await asyncio.to_thread(self.fleet.repositories) if queued else ())]
        if folder not in known or (mode and mode not in get_args(Mode)) or not said.strip():
            raise UsageError("web.unreadable")
        said = redactor().clean(said)
        if queued:
            options = {"mode": mode or None, "model": self._flags.get("llm.model")}
            return RUN + await asyncio.to_thread(self.fleet.submit, folder, said, options)
        flags = {**self._flags, "mode": mode or self._flags.get("mode")}
        await self._free(Path(folder))
        worker = await SessionWorker().open(Path(folder), None, flags)
        self._keep(worker)
        self._inbox.put(worker.session_id, SayMessage(text=said))
        return worker.session_id

    async def fork(self, session_id: str, before: int) -> str:
        """A new session that begins as this one was before a message, or is (0); its id."""
        found = self._show(session_id).id
        said = past_messages(self._events.load(found)) if before else ()
        number = next((one.number for one in said if one.seq == before), 0) if before else None
        return fork(self._events, found, number)

    async def tend(self) -> None:
        """Open what nobody has open and somebody wants something of, until this is cancelled."""
        seen = -1
        while True:
            try:
                version = self.version()  # does not count what this process puts into an inbox
                if self._waits or version != seen:
                    self._waits = await self._tend_once()
                    seen = version
            except UserError as error:
                _log.warning("%s", text(error.key, **error.values))
            await asyncio.sleep(_LOOK_S)

    async def aclose(self) -> None:
        """Stop the work in order; everything is kept."""
        self.closing.set()
        working = [one.task for one in self._working.values()]
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        self.fleet.close()
        self._events.close()

    def _own(self) -> Sequence[SessionSummary]:
        """All sessions except those of the fleet, which are shown as its runs."""
        return [one for one in self._sessions.listed() if not one.is_run]

    def _show(self, session_id: str) -> SessionSummary:
        found = self._sessions.show(session_id)
        if found.is_run:
            raise UsageError("fleet.is_a_run", run=found.id)
        return found

    async def _tend_once(self) -> bool:
        """Whether somebody else has a session that something waits for: they may go before they take it."""
        left = False
        for session_id in self._inbox.sessions():
            if session_id in self._working:
                left = True
                continue
            found = self._sessions.show(session_id)
            if holder_of(found.workspace) == session_id:
                left = True
                continue
            for number, command in self._inbox.waiting(session_id):
                if isinstance(command, CancelWork):
                    self._inbox.settle(number, "clients.nothing_runs")
            if self._inbox.waiting(session_id):
                await self._open(session_id, Path(found.workspace))
        return left

    async def _free(self, folder: Path) -> None:
        """Leave a folder that this process holds for a session in which nothing is being done."""
        folder = await asyncio.to_thread(folder.resolve)
        for one in [*self._working.values()]:
            if one.worker.folder == folder and one.worker.leave():
                await asyncio.wait([one.task])

    async def _open(self, session_id: str, folder: Path) -> None:
        try:
            await self._free(folder)
            self._keep(await SessionWorker().open(folder, session_id, {**self._flags, "mode": None}))
        except UserError as error:
            if holder_of(str(folder)) == session_id:
                return  # somebody else was faster, and takes it
            for number, _ in self._inbox.waiting(session_id):
                self._inbox.settle(number, text(error.key, **error.values))

    def _keep(self, worker: SessionWorker) -> None:
        task = asyncio.ensure_future(worker.run())
        self._working[worker.session_id] = _Working(worker, task)
        task.add_done_callback(lambda done: self._ended(worker.session_id, done))

    def _ended(self, session_id: str, task: asyncio.Task[None]) -> None:
        self._working.pop(session_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("session %s ended", session_id, exc_info=error)

    def _status(self, session_id: str, workspace: str, outcome: str | None, last: str) -> str:
        """Whether it works, waits for the user, is open, or rests."""
        waits = last in ("request_finished", "session_started", "approval_requested")
        if waits and outcome in ("awaiting_approval", "consultation", "not_satisfied"):
            return "asks"
        if holder_of(workspace) != session_id:
            return "rests"
        return "open" if last in ("request_finished", "session_started", "session_titled") else "works"
