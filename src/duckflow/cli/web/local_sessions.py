"""Sessions of this machine for the web view. A command for a closed session opens it in this process."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, get_args

from duckflow.api import delete_session
from duckflow.app.opening import Opening
from duckflow.app.places import LIVE, holder_of, open_kept_files, open_log
from duckflow.cli.secrets import redactor
from duckflow.cli.web.fleet_sessions import FleetSessions
from duckflow.cli.web.folders import FolderReader, file_names
from duckflow.config.loading import load_as_trusted
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.domain.commands import CancelWork, ClientCommand, SayMessage, typed_line
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import SessionTitled, StoredEvent
from duckflow.domain.model import Picture
from duckflow.domain.modes import Mode
from duckflow.domain.session_client import EarlierSession, SessionClient, SessionUpdate
from duckflow.domain.text import excerpt, one_line
from duckflow.i18n.catalogue import text
from duckflow.loops.session import Session
from duckflow.loops.thinking.pictures import keep_pictures, media_of
from duckflow.loops.thinking.titles import LONGEST
from duckflow.loops.undo.rewind import fork
from duckflow.loops.undo.undo import Undo
from duckflow.safety.files.workspace import Workspace
from duckflow.session.host import SessionHost
from duckflow.session.local import LocalSession
from duckflow.session.remote import RemoteSession, leave_command
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.live_file import LiveView, live_path, read_live
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.commands.table import SLASHES
from duckflow.ui.output.escaping import harmless
from duckflow.ui.web.session_view import RUN_PREFIX
from duckflow.ui.web.typed_lines import LineResult, is_message, run_line

_LOOK_S = 0.15
_PATIENCE_S = 10.0
"""Seconds that a page waits for the result of a command."""
_LISTED = 100
_FRESH_S = 5.0
"""Seconds for which the list of a folder's files counts as new."""
_log = logging.getLogger(__name__)


class _Open(NamedTuple):
    """A session of this process, its client, and the task that closes it when it is idle."""

    host: SessionHost
    client: LocalSession
    serving: asyncio.Task[None]


class Sent(NamedTuple):
    """Outcome of a typed line: the result of a command, or of sending a message."""

    result: LineResult | None = None
    objection: str = ""
    waits: bool = False


class LocalSessions:
    """The sessions of this machine; some are open in this process."""

    def __init__(self, folder: Path, flags: dict[str, object], database: str | None = None) -> None:
        self._folder = folder
        self.flags = flags
        """Settings given on the command line, by dotted key."""
        self._events = open_log()
        self._sessions = Sessions(self._events.database)
        self._inbox = CommandInbox(self._events.database)
        self._left = True
        self._open: dict[str, _Open] = {}
        self._opening = asyncio.Lock()
        self._files: dict[str, tuple[float, Sequence[str]]] = {}
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
            if one.title or one.id in self._open
        ]

    def search(self, words: str) -> Sequence[dict[str, str]]:
        """Return the sessions in which someone said these words, each with the place. Blocking."""
        found = self._sessions.search(words) if words.strip() else ()
        return [
            {"id": one.id, "said": harmless(excerpt(said, words))}
            for one, said in found[:_LISTED]
            if not one.is_run
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
        return read_live(live_path(state_dir() / LIVE, session_id.removeprefix(RUN_PREFIX)))

    async def difference(self, session_id: str) -> str:
        """Return the diff of all changes that the session made to files."""
        if session_id.startswith(RUN_PREFIX):
            return await asyncio.to_thread(self.fleet.patch, session_id.removeprefix(RUN_PREFIX))
        found = self._show(session_id)
        session = await asyncio.to_thread(Session, self._events, found.id, redactor())
        with closing(Workspace(Path(found.workspace))) as space, closing(open_kept_files(Settings())) as kept:
            return await Undo(session, space, kept, self._events).diff(session=True)

    async def type_line(
        self, session_id: str, line: str, pictures: Sequence[bytes] = (), *, later: bool = False
    ) -> Sent:
        """Send a message, or carry out a slash command, which never reaches the model."""
        line = redactor().clean(line)
        client, guest = await self._client(session_id, opens=line.startswith(SLASHES))
        if not is_message(line, client):
            return Sent(result=await run_line(client, line, guest=guest))
        kept = await asyncio.to_thread(self._keep, session_id, pictures) if pictures else ()
        objection = await self.send(session_id, SayMessage(text=line, pictures=kept, later=later))
        return Sent(objection=objection or "", waits=objection is None)

    def _keep(self, session_id: str, pictures: Sequence[bytes]) -> tuple[Picture, ...]:
        with closing(open_kept_files(Settings())) as kept:
            return keep_pictures(pictures, self._show(session_id).id, kept)

    def picture(self, digest: str) -> tuple[bytes, str] | None:
        """Return a picture of a message and its media type, None if it is not kept any more. Blocking."""
        with closing(open_kept_files(Settings())) as kept:
            data = kept.picture(digest)
        media = media_of(data) if data else None
        return (data, media) if data and media else None

    def waiting(self, session_id: str) -> Sequence[str]:
        """Return the messages that the session has not taken yet, oldest first."""
        opened = self._open.get(session_id)
        left = [typed_line(one.command) for one in self._inbox.waiting(session_id)]
        here = opened.host.waiting_lines(guests=True) if opened else ()
        return [harmless(line) for line in (*here, *left) if line]

    async def reader(self, session_id: str, folder: str) -> SessionClient:
        """Return the session, or its folder, for suggestions. It opens nothing."""
        if session_id in self._open:
            return self._open[session_id].client
        where = self._show(session_id).workspace if session_id else self.known(folder)
        clock = asyncio.get_running_loop().time()
        listed_at, names = self._files.get(where, (-_FRESH_S, ()))
        if clock - listed_at >= _FRESH_S:
            names = await asyncio.to_thread(file_names, where)
            self._files[where] = clock, names
        earlier = [EarlierSession(one.id, one.title, one.updated) for one in self._own() if one.title]
        return FolderReader(names, (), earlier)

    def folder_of(self, session_id: str) -> str:
        """Return the folder of a session."""
        return self._show(session_id).workspace

    def known(self, folder: str) -> str:
        """Return the folder, if it is one that the page may choose; otherwise raise UsageError."""
        if folder not in self.folders():
            raise UsageError("web.unreadable")
        return folder

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        found, event = self._show(session_id), SessionTitled(title=one_line(redactor().clean(title), LONGEST))
        if not event.title:
            raise UsageError("web.unreadable")
        if (opened := self._open.get(found.id)) is not None:
            opened.host.app.session.record(event)
        elif holder_of(found.workspace) == found.id:
            raise UsageError("web.open_elsewhere")
        else:
            session = await asyncio.to_thread(Session, self._events, found.id, redactor())
            session.record(event)

    async def delete(self, session_id: str) -> None:
        """Delete a session and its files for undo, unless it is at work or open in another process."""
        found = self._show(session_id)
        if (opened := self._open.get(found.id)) is not None:
            if not opened.host.leave():
                raise UsageError("web.at_work")
            await asyncio.wait([opened.serving])
        if holder_of(found.workspace) == found.id:
            raise UsageError("web.open_elsewhere")
        await asyncio.to_thread(delete_session, found.id)

    async def _client(self, session_id: str, *, opens: bool) -> tuple[SessionClient, bool]:
        """Return a client for a line, and whether it is a guest of another process."""
        found = self._show(session_id)
        if (ending := self._open.get(found.id)) is not None and ending.host.leaving:
            await asyncio.wait([ending.serving])
        if found.id not in self._open:
            if not opens:
                return await self.reader(found.id, ""), False
            if holder_of(found.workspace) == found.id:
                return await asyncio.to_thread(RemoteSession, self._events, found, redactor()), True
            await self._take_up(found.id, Path(found.workspace))
        return self._open[found.id].client, False

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

    async def start(self, folder: str, mode: str, model: str) -> str:
        """Open a session in a known folder; return its id."""
        if mode and mode not in get_args(Mode):
            raise UsageError("web.unreadable")
        flags = {**self.flags, "mode": mode or self.flags.get("mode")}
        flags |= {"llm.model": model} if model else {}
        async with self._opening:
            return (await self._open_host(Path(self.known(folder)), None, flags)).session_id

    async def queue(self, folder: str, said: str, mode: str) -> str:
        """Queue a request for the fleet; return the id of the run on the page."""
        known = [*self.folders(), *await asyncio.to_thread(self.fleet.repositories)]
        if folder not in known or (mode and mode not in get_args(Mode)) or not said.strip():
            raise UsageError("web.unreadable")
        options = {"mode": mode or None, "model": self.flags.get("llm.model")}
        run = await asyncio.to_thread(self.fleet.submit, folder, redactor().clean(said), options)
        return RUN_PREFIX + run

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
            return await self._open_host(folder, session_id, {**self.flags, "mode": None})

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
        client = LocalSession(host, loaded)
        self._open[host.session_id] = _Open(host, client, asyncio.ensure_future(self._serve(host, client)))
        return host

    async def _serve(self, host: SessionHost, client: LocalSession) -> None:
        ready = [asyncio.ensure_future(one) for one in (client.keep_ready(), client.list_models())]
        try:
            await host.until_idle()
        finally:
            for task in ready:
                task.cancel()
            await asyncio.gather(*ready, return_exceptions=True)
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
