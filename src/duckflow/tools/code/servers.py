"""The language servers of one workspace: started when they are needed, stopped when they are idle."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from duckflow.config.mcp import McpServer
from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.text import cut, one_line
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.server_process import ServerProcess
from duckflow.safety.uncancelled import shielded
from duckflow.tools.code.rows import FoundServer, package_folder, settings_for, suffix_of, suffixes_of
from duckflow.tools.code.session import ServerSession, ServerTimes
from duckflow.tools.code.wire import LspConnection, ServerFault

_REASON = 300
_NO_SANDBOX = "there is no sandbox here"
_MOST_FAILURES = 3
"""Number of times in a row that a server may fail. After that, it is not started again."""

_STABLE_S = 60.0
"""Seconds after which a server that ends counts as one that works."""


class LanguageServer:
    """One server. `make` returns a new process for it."""

    def __init__(
        self,
        found: FoundServer,
        workspace: Workspace,
        make: Callable[[], ServerProcess],
        settings: dict[str, Any],
        idle_s: float,
        times: ServerTimes,
    ) -> None:
        self.name = found.row.name
        self.sure = found.row.sure
        """Codes of errors that are certain; None: all errors."""
        self._row = found.row
        self._workspace = workspace
        self._make = make
        self._settings = settings
        self._idle_s = idle_s
        self._times = times
        self._wire: LspConnection | None = None
        self._session: ServerSession | None = None
        self._starting: asyncio.Task[ServerSession] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failures = 0
        self._used = self._started = 0.0
        self._users = 0
        self.problem = ""
        """Reason why it is not used any more, or why it ended last."""

    @property
    def warm(self) -> bool:
        """True if it runs."""
        return self._session is not None and not self._session.ended

    @property
    def usable(self) -> bool:
        """False once it has failed too often."""
        return self._failures < _MOST_FAILURES

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[ServerSession]:
        """Start the server if it does not run. Its failures become a ToolError."""
        self._users += 1
        try:
            session = await self._running()
            self._used = time.monotonic()
            try:
                yield session
            except TimeoutError:
                said = f"did not answer within {self._times.answer_s:g} s and was stopped"
                await shielded(self._fail(said))
                raise ToolError(f"The language server {self.name} {said}.") from None
            except ServerFault as fault:
                if not fault.gone:
                    raise ToolError(f"The language server {self.name} can't do this: {fault}.") from fault
                await shielded(self._fail(f"ended: {fault}"))
                raise ToolError(f"The language server {self.name} {self.problem}.") from fault
        finally:
            self._users -= 1
            self._used = time.monotonic()

    async def aclose(self) -> None:
        """Stop the server."""
        for task in (self._starting, self._watching):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
                await asyncio.wait([task])
        self._starting = self._watching = None
        await self._stop()

    async def _running(self) -> ServerSession:
        if self._session is not None:
            if not self._session.ended:
                return self._session
            await shielded(self._fail(f"ended: {self._session.ended}"))
        if not self.usable:
            raise ToolError(f"The language server {self.name} {self.problem}; it is not started again.")
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> ServerSession:
        session = ServerSession(self._row, self._workspace, self._settings, self._times)
        self._wire = wire = LspConnection(self._make(), session)
        self._started = time.monotonic()
        try:
            async with asyncio.timeout(self._times.start_s):
                await wire.start()
                await session.begin(wire)
        except (TimeoutError, ServerFault, ToolError) as exc:
            slow = f"did not start within {self._times.start_s:g} s"
            why = "there is no sandbox to run it in" if _NO_SANDBOX in str(exc) else str(exc)
            await shielded(self._fail(slow if isinstance(exc, TimeoutError) else f"can't be started: {why}"))
            self._failures = _MOST_FAILURES  # it would not start the next time either
            raise ToolError(f"The language server {self.name} {self.problem}.") from exc
        except asyncio.CancelledError:
            await shielded(self._stop())
            raise
        self._session, self._used = session, time.monotonic()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._stop_when_idle())
        return session

    async def _stop_when_idle(self) -> None:
        while self._wire is not None:
            rest = self._used + self._idle_s - time.monotonic()
            if self._users:
                await asyncio.sleep(self._idle_s)
            elif rest > 0:
                await asyncio.sleep(rest)
            else:
                await shielded(self._stop())

    async def _fail(self, reason: str) -> None:
        stable = self._session is not None and time.monotonic() - self._started > _STABLE_S
        self._failures = 1 if stable else self._failures + 1
        self.problem = cut(one_line(reason, _REASON), _REASON).rstrip(".")
        await self._stop()

    async def _stop(self) -> None:
        wire, self._wire, self._session = self._wire, None, None
        if wire is not None:
            await wire.aclose()


class CodeServers:
    """The installed servers for one workspace. Nothing is started before a file needs it."""

    def __init__(
        self,
        workspace: Workspace,
        found: Sequence[FoundServer],
        idle_s: float,
        shell: ShellSettings,
        closed: Iterable[Path],
        env: Mapping[str, str],
        times: ServerTimes | None = None,
    ) -> None:
        self.workspace = workspace
        self.found = tuple(found)
        self.suffixes = suffixes_of(self.found)
        """Suffixes of the files for which there is a server."""
        self._idle_s = idle_s
        self._shell = shell
        self._closed = tuple(closed)
        self._env = env
        self._times = times or ServerTimes()
        self._servers: dict[str, LanguageServer] = {}

    def for_path(self, path: str) -> LanguageServer | None:
        """Return a working server for a file, or None."""
        suffix = suffix_of(path)
        fitting = (self._server(one) for one in self.found if suffix in one.row.suffixes)
        return next((one for one in fitting if one.usable), None)

    def grouped(self, paths: Iterable[str]) -> list[tuple[LanguageServer, list[str]]]:
        """Return the servers for these files, each with its files. Leaves out files without a server."""
        groups: dict[str, tuple[LanguageServer, list[str]]] = {}
        for path in paths:
            if (server := self.for_path(path)) is not None:
                groups.setdefault(server.name, (server, []))[1].append(path)
        return list(groups.values())

    def problem_for(self, path: str) -> str:
        """Return a sentence on why there is no server for a file."""
        if not self.found:
            return "No language server is installed"
        suffix = suffix_of(path)
        failed = [self._server(one) for one in self.found if suffix in one.row.suffixes]
        if failed:
            return f"The language server {failed[0].name} {failed[0].problem}"
        return f"No language server for {suffix or 'such'} files is installed"

    async def aclose(self) -> None:
        """Stop all servers."""
        servers, self._servers = list(self._servers.values()), {}
        await asyncio.gather(*(one.aclose() for one in servers))

    def _server(self, found: FoundServer) -> LanguageServer:
        name = found.row.name
        if name not in self._servers:
            self._servers[name] = LanguageServer(
                found,
                self.workspace,
                lambda: self._process(found),
                settings_for(found, self.workspace.root, self._env),
                self._idle_s,
                self._times,
            )
        return self._servers[name]

    def _process(self, found: FoundServer) -> ServerProcess:
        """Return a process that can read the folder and the toolchains, and write only to an empty home."""
        program = McpServer(
            command=(found.program, *found.row.command[1:]),
            env=dict(found.row.environment),
            workspace="read",
            read=tuple(filter(None, (package_folder(found.program),))),
        )
        place = (self.workspace.root, self._shell, None)
        return ServerProcess(program, *place, closed=self._closed, env=self._env)
