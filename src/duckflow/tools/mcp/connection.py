"""Connection to one MCP server, opened when needed and reopened with growing delays after failures."""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from duckflow.config.mcp import VARIABLE, WORKSPACE_NAME, WORKSPACE_NAMES, McpServer, from_home
from duckflow.config.places import is_empty, remove_server_homes, server_home
from duckflow.config.saved_answers import SavedAnswers
from duckflow.config.settings import ShellSettings
from duckflow.config.toml_file import read_variables
from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.extensions import ServerStatus
from duckflow.domain.frozen import replace
from duckflow.domain.lines import TextLine
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text_in
from duckflow.safety.sandbox.server_process import ServerProcess
from duckflow.tools.mcp.remote import (
    TOKENS,
    RemoteFault,
    RemoteTool,
    ServerOffer,
    advice_for,
    first_of,
    reason_of,
    too_slow,
)

if TYPE_CHECKING:
    from duckflow.tools.mcp.client import ConnectedServer

_PINS, _GRANTS = SavedAnswers("mcp_pins.json"), SavedAnswers("mcp_allowed.json")
_LONGEST = 12_000
ALL, READING = "*", "?reading"
"""Grants for all tools of a server, and for those that only read."""


class Pins:
    """Accepted tool descriptions of one server, kept on disk. With another command, it is another server."""

    def __init__(self, name: str, server: McpServer) -> None:
        self._prefix = prefix_of(name, server)

    def changed(self, tools: Sequence[RemoteTool]) -> dict[str, str]:
        """Return the tools whose description changed, with the accepted text. Accept tools that are new."""
        known = _PINS.load()
        before, changed = len(known), dict[str, str]()
        for tool in tools:
            digest, _, text = known.setdefault(f"{self._prefix}{tool.name}", _pin(tool)).partition("\n")
            if not _pin(tool).startswith(f"{digest}\n"):
                changed[tool.name] = text
        if len(known) > before:
            _PINS.save(known)
        return changed

    def accept(self, tool: RemoteTool) -> None:
        """Accept the tool's current description."""
        _PINS.save({**_PINS.load(), f"{self._prefix}{tool.name}": _pin(tool)})


def grant(name: str, server: McpServer, tool: str, *, allow: bool) -> None:
    """Allow a tool of a server permanently, or no longer. `tool` can also be READING or ALL."""
    prefix = prefix_of(name, server)
    key, whole = f"{prefix}{tool}", tool == ALL and not allow
    known = _GRANTS.load().items()
    kept = {one: said for one, said in known if one != key and not (whole and one.startswith(prefix))}
    _GRANTS.save({**kept, key: ""} if allow else kept)


def granted(name: str, server: McpServer) -> list[str]:
    """Return the tools of a server that the user has allowed permanently."""
    prefix = prefix_of(name, server)
    return [one.removeprefix(prefix) for one in _GRANTS.load() if one.startswith(prefix)]


def forget_server(server: str) -> None:
    """Forget the pins, grants and sign-ins of all servers with this name, and remove their homes."""
    remove_server_homes(server)
    for saved in (_PINS, _GRANTS, TOKENS):
        known = saved.load()
        kept = {key: value for key, value in known.items() if not key.startswith(f"{server}#")}
        if kept != known:
            saved.save(kept)


def prefix_of(name: str, server: McpServer) -> str:
    """Return the beginning of the names under which things about a server are stored."""
    return f"{name}#{_digest(server)}."


def _digest(server: McpServer) -> str:
    """Return an identifier for a command or address."""
    return hashlib.sha256(json.dumps([server.command, server.url]).encode()).hexdigest()[:12]


def _pin(tool: RemoteTool) -> str:
    parts = [tool.description, tool.parameters, *(["reads"] if tool.reads_only else [])]
    said = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{digest}\n{cut(tool.text, _LONGEST)}"


@dataclass(frozen=True)
class ServerOpener:
    """Opens the servers of one workspace."""

    workspace: Path
    shell: ShellSettings
    closed: tuple[Path, ...]
    env: Mapping[str, str]

    async def connect(self, name: str, server: McpServer) -> "AbstractAsyncContextManager[ConnectedServer]":
        """Return a context that connects to a server until its block ends."""
        try:
            await asyncio.to_thread(import_module, "duckflow.tools.mcp.oauth")
            from duckflow.tools.mcp.client import open_address, open_process  # noqa: PLC0415 - takes seconds
            from duckflow.tools.mcp.oauth import stored_sign_in  # noqa: PLC0415 - as above
        except ImportError as exc:
            raise ToolError("the package is missing; install it with: pip install 'duckflow[mcp]'") from exc
        if server.url:
            url = self._filled({"url": server.url})["url"]
            signed_in = await stored_sign_in(url, prefix_of(name, server))
            return open_address(url, self._filled(server.headers), server.timeout_s, signed_in)
        command = self._filled({str(n): word for n, word in enumerate(server.command)}).values()
        env = {**await asyncio.to_thread(self._env_file, server.env_file), **self._filled(server.env)}
        program = replace(server, command=tuple(command), env=env)
        home = await asyncio.to_thread(server_home, f"{name}-{_digest(server)}")
        process = ServerProcess(program, self.workspace, self.shell, home, closed=self.closed, env=self.env)
        first = await asyncio.to_thread(self._may_download, name, server, home)
        return open_process(process, server.start_timeout_s * (_FIRST_START if first else 1))

    @staticmethod
    def _may_download(name: str, server: McpServer, home: Path) -> bool:
        """Return True until the server has answered from this home: it may have to be downloaded first."""
        known = any(one.startswith(prefix_of(name, server)) for one in _PINS.load())
        return not known or is_empty(home)

    async def sign_in(
        self, name: str, server: McpServer, tell: Callable[[str], None], typed: TextIO | None = None
    ) -> None:
        """Let the user sign in at a server. Raise ToolError if that fails."""
        from duckflow.tools.mcp.oauth import sign_in  # noqa: PLC0415 - takes seconds

        if not server.url:
            raise ToolError("it is a program, not an address")
        try:
            url = self._filled({"url": server.url})["url"]
            await sign_in(url, prefix_of(name, server), tell, typed)
        except Exception as exc:  # third-party library: any error becomes one sentence
            raise ToolError(_reason(exc)) from exc

    def _filled(self, values: Mapping[str, str]) -> dict[str, str]:
        """Replace each `${NAME}` by that variable of the user's environment, or by its default."""
        known = {**self.env, **dict.fromkeys(WORKSPACE_NAMES, str(self.workspace))}
        known[WORKSPACE_NAME] = self.workspace.name

        def value(found: re.Match[str]) -> str:
            said = known.get(found[1]) or found[2]
            if said is None and found[1] not in known:
                raise ToolError(f"the variable {found[1]} is not set")
            return said or ""

        return {name: VARIABLE.sub(value, text) for name, text in values.items()}

    def _env_file(self, name: str) -> dict[str, str]:
        """Return the variables in a file of the form `NAME=value`."""
        if not name:
            return {}
        try:
            return read_variables(self.workspace / from_home(self._filled({"": name})[""]))
        except UsageError as exc:
            raise ToolError(str(exc)) from exc


T = TypeVar("T")

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_STABLE_S = 10.0
"""Running time in seconds after which a server that ends is restarted without a delay."""

_CLOSING_S = 15.0
_FIRST_START = 5
"""Factor of the time that a program has to start for the first time, because it may be downloaded."""


class ServerConnection:
    """Status of a server, and calls to it. A call that may have arrived is never repeated automatically."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        opener: ServerOpener,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.server = server
        self.offer = ServerOffer()
        self.changed: dict[str, str] = {}
        """Tools whose description differs from the accepted one, each with the accepted text."""
        self.problem = ""
        self._opener = opener
        self._pins = Pins(name, server)
        self._clock = clock
        self._session: ConnectedServer | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._lock = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0

    @property
    def status(self) -> ServerStatus:
        """Current status."""
        return "ready" if self._session is not None else "down" if self.problem else "waiting"

    @property
    def advice(self) -> TextLine | None:
        """Setting that would probably let the server start."""
        return advice_for(self.name, self.server, self.problem) if self._session is None else None

    def failure(self, said: str) -> ToolError:
        """Return a failure with the setting that the user could change."""
        found = advice_for(self.name, self.server, said)
        if found is None:
            return ToolError(said)
        advice = text_in("en", found.key, **found.values)
        return ToolError(f"{said} Tell the user: {advice}", found.key, name=self.name)

    def allows(self, tool: RemoteTool) -> bool:
        """Return whether the user has allowed the tool permanently."""
        found = granted(self.name, self.server)
        return ALL in found or tool.name in found or (tool.reads_only and READING in found)

    async def connect(self) -> "ConnectedServer":
        """Return the server, connecting to it if needed. Raise ToolError if it can't be reached now."""
        async with self._lock:
            if self._session is not None:
                return self._session
            wait = self._not_before - self._clock()
            if wait > 0:
                later = f"it can be tried again in {wait:.0f} s"
                raise self.failure(f"The MCP server {self.name} is down ({self.problem}); {later}.")
            await self._let_go()
            return await self._start()

    def accept(self, tool: RemoteTool) -> None:
        """Record that the user has accepted the tool's current description."""
        self._pins.accept(tool)
        self.changed.pop(tool.name, None)

    async def aclose(self) -> None:
        """Close the connection. If the server is a program, it ends."""
        async with self._lock:
            await self._let_go()

    async def ask(self, question: "Callable[[ConnectedServer], Awaitable[T]]") -> T:
        """Return the server's answer. Ask again only if the first request certainly did not arrive."""
        for last in (False, True):
            session = await self.connect()
            try:
                async with asyncio.timeout(self.server.timeout_s):
                    return await question(session)
            except TimeoutError:
                raise ToolError(
                    f"The MCP server {self.name} did not answer within {self.server.timeout_s:g} s."
                ) from None
            except RemoteFault as fault:
                again = fault.unsent and not last
                if fault.lost:
                    self._lose(str(fault), session, at_once=again)
                if not again:
                    later = " It is connected again at the next call." if fault.lost else ""
                    raise ToolError(f"The MCP server {self.name}: {fault}.{later}") from fault
        raise AssertionError

    async def _start(self) -> "ConnectedServer":
        started: asyncio.Future[ConnectedServer] = asyncio.get_running_loop().create_future()
        seconds = self.server.start_timeout_s
        self._leave.clear()
        self._keeping = asyncio.create_task(self._keep(started))
        try:
            # a program that is too slow has been given up before, with its last output
            longest = seconds * _FIRST_START + _CLOSING_S if self.server.command else seconds
            async with asyncio.timeout(longest):
                session = await asyncio.shield(started)
                offer = await session.offer()
        except (TimeoutError, RemoteFault) as exc:
            reason = too_slow(seconds) if isinstance(exc, TimeoutError) else str(exc)
            if not started.done():
                self._keeping.cancel()  # it is still connecting
            self._lose(reason, None)
            await self._let_go()
            raise self.failure(f"The MCP server {self.name} can't be used: {reason}.") from exc
        except asyncio.CancelledError:
            self._keeping.cancel()  # the session ends while the server is starting
            raise
        finally:
            started.cancel()
        self._session, self.problem, self._not_before = session, "", self._clock() + _STABLE_S
        self.offer, self.changed = offer, self._pins.changed(offer.tools)
        return session

    async def _keep(self, started: "asyncio.Future[ConnectedServer]") -> None:
        """Hold the connection, because the package requires that one task opens and closes it."""
        try:
            async with await self._opener.connect(self.name, self.server) as session:
                if not started.done():
                    started.set_result(session)
                leaving = asyncio.ensure_future(self._leave.wait())
                try:
                    await asyncio.wait({session.ending, leaving}, return_when=asyncio.FIRST_COMPLETED)
                    if session.ending.done():
                        self._lose(session.ending.result(), session)
                finally:
                    leaving.cancel()
        except Exception as exc:  # noqa: BLE001 - third-party library: any error becomes one sentence
            if not started.done():
                started.set_exception(RemoteFault(_reason(exc)))
            else:
                self._lose(_reason(exc), started.result())

    def _lose(self, reason: str, session: "ConnectedServer | None", *, at_once: bool = False) -> None:
        """Mark the server as lost. Retry at once after a stable run, otherwise with growing delays."""
        if session is not None and session is not self._session:
            return
        stable = at_once or (self._session is not None and self._clock() >= self._not_before)
        self._failures = 0 if stable else self._failures + 1
        first = self._session is not None and self._failures <= 1
        wait = 0.0 if first or stable else min(_FIRST_WAIT_S * 2 ** (self._failures - 1), _LONGEST_WAIT_S)
        self._session, self.problem = None, reason_of(reason)
        self._not_before = self._clock() + wait
        self._leave.set()

    async def _let_go(self) -> None:
        self._session = None
        self._leave.set()
        keeping, self._keeping = self._keeping, None
        if keeping is None:
            return
        await asyncio.wait([keeping], timeout=_CLOSING_S)
        if not keeping.done():
            keeping.cancel()
            await asyncio.wait([keeping])


def _reason(exc: BaseException) -> str:
    """Return the reason for a failure in a few words."""
    exc = first_of(exc)
    # compared by name, because the class is not imported here
    known = isinstance(exc, (ToolError, RemoteFault)) or type(exc).__name__ == "MCPError"
    return str(exc) if known else f"{type(exc).__name__}: {exc}"
