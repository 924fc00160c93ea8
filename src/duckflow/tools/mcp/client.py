"""Connections by the `mcp` client, which only this module uses. Import it in a thread: that takes seconds."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from duckflow.config.version import __version__
from duckflow.domain.text import cut
from duckflow.safety.sandbox.server_process import ServerProcess
from duckflow.tools.mcp.http import BAD_STATUS, LONGEST_MESSAGE, UNSENT, BoundedTransport
from duckflow.tools.mcp.remote import (
    LONGEST_DESCRIPTION,
    LONGEST_SCHEMA,
    MOST_ITEMS,
    TOOL_NAME,
    RemoteFault,
    RemotePrompt,
    RemoteResult,
    RemoteTool,
    ServerOffer,
    first_of,
    one_line,
    plain,
)

_WAITING = 1_000
_PAGES = 20
_CONNECT_S = 30.0
_IDLE_S = 3_600.0
_NAME, _ADDRESS = 100, 1_000
_GONE = (-32000, -32001, -32600, UNSENT, BAD_STATUS)
"""Codes, of the package and of Duckflow, for a connection or a session that no longer exists."""

T = TypeVar("T")
Page = TypeVar("Page", bound=types.PaginatedResult)
logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it would log the messages of servers, with tracebacks


class ConnectedServer:
    """Server with an open connection."""

    def __init__(self, client: Client, ending: "asyncio.Future[str]") -> None:
        self._client = client
        self.ending = ending
        """Reason for its end, once it has ended. Never set for a server that is reached by its address."""

    async def offer(self) -> ServerOffer:
        """Return all that the server offers, except items whose name or schema can't be used."""
        client, has = self._client, self._client.server_capabilities
        tools = await self._pages(has.tools, lambda cursor: client.list_tools(cursor=cursor))
        prompts = await self._pages(has.prompts, lambda cursor: client.list_prompts(cursor=cursor))
        resources = await self._pages(has.resources, lambda cursor: client.list_resources(cursor=cursor))
        by_name = {tool.name: tool for tool in islice(_tools(tools), MOST_ITEMS)}
        return ServerOffer(
            version=client.protocol_version or "",
            tools=tuple(by_name.values()),
            prompts=tuple(islice(_prompts(prompts), MOST_ITEMS)),
            resources=tuple(islice(_addresses(resources), MOST_ITEMS)),
        )

    async def call(self, tool: str, arguments: dict[str, Any]) -> RemoteResult:
        """Call a tool. Return its result as text without terminal control."""
        result = await self._asked(lambda: self._client.call_tool(tool, arguments))
        said = "\n".join(_shown(one) for one in result.content)
        if not said.strip() and result.structured_content is not None:
            said = json.dumps(result.structured_content, ensure_ascii=False)
        return RemoteResult(text=plain(said), failed=bool(result.is_error))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt."""
        got = await self._asked(lambda: self._client.get_prompt(name, arguments))
        return plain("\n\n".join(_shown(one.content) for one in got.messages))

    async def resource(self, uri: str) -> str:
        """Return the text of a resource."""
        got = await self._asked(lambda: self._client.read_resource(uri))
        return plain("\n".join(_content(one) for one in got.contents))

    async def _pages(self, offered: object, ask: Callable[[str | None], Awaitable[Page]]) -> list[Page]:
        """Return all pages of a list. Empty if the server does not offer it."""
        pages: list[Page] = []
        cursor: str | None = None
        while offered is not None and len(pages) < _PAGES and (cursor or not pages):
            page = await self._asked(partial(ask, cursor))
            pages.append(page)
            cursor = page.next_cursor
        return pages

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the server's answer. Failures in the package or in the server become a RemoteFault."""
        asking = asyncio.ensure_future(ask())
        try:
            await asyncio.wait({asking, self.ending}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise RemoteFault(self.ending.result(), lost=True)  # noqa: TRY301 - as below
            return asking.result()
        except MCPError as exc:
            raise _fault(exc) from exc
        except (RemoteFault, TimeoutError):
            raise
        except Exception as exc:  # third-party library and server: any error becomes one sentence
            raise RemoteFault(f"{type(exc).__name__}: {exc}", lost=True) from exc
        finally:
            asking.cancel()


@asynccontextmanager
async def open_process(process: ServerProcess) -> AsyncGenerator[ConnectedServer]:
    """Start a program and connect to it over its standard input and output."""
    ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with Client(_Pipes(process, ending), client_info=_us(), cache=None) as client:
        yield ConnectedServer(client, ending)


@asynccontextmanager
async def open_address(
    url: str, headers: Mapping[str, str], seconds: float
) -> AsyncGenerator[ConnectedServer]:
    """Connect to an address over streamable HTTP or, if the server does not know it, its predecessor SSE."""
    ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connected(
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        transport = BoundedTransport(httpx2.AsyncHTTPTransport())
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, transport=transport)

    async with AsyncExitStack() as stack:
        # later than our own timeout, which has a clear message
        timeout = httpx2.Timeout(_CONNECT_S, read=2 * seconds)
        http = await stack.enter_async_context(connected(headers, timeout))
        streams = streamable_http_client(url, http_client=http, max_sse_event_size=LONGEST_MESSAGE)
        try:
            client = await stack.enter_async_context(Client(streams, client_info=_us(), cache=None))
        except Exception as error:
            first = first_of(error)
            if not isinstance(first, MCPError) or first.error.code != BAD_STATUS:
                raise
            older = sse_client(url, dict(headers), _CONNECT_S, _IDLE_S, connected)
            try:
                client = await stack.enter_async_context(
                    Client(older, client_info=_us(), cache=None, mode="legacy")
                )
            except Exception:  # noqa: BLE001 - it speaks neither, and the first reason counts
                raise error from None
        yield ConnectedServer(client, ending)


class _Pipes:
    """Transport of the package over our process: each line is a message, of limited length."""

    def __init__(self, process: ServerProcess, ending: "asyncio.Future[str]") -> None:
        self._process = process
        self._ending = ending
        self._rest = bytearray()
        self._writing: asyncio.Task[None] | None = None
        sender, self._from_server = anyio.create_memory_object_stream[SessionMessage | Exception](_WAITING)
        self._take = sender
        self._to_server, self._outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def __aenter__(self) -> Any:  # noqa: ANN401 - the package's own pair of streams
        try:
            await self._process.start(self._read, self._end)
        except BaseException:
            await self.__aexit__()
            raise
        self._writing = asyncio.create_task(self._write())
        return self._from_server, self._to_server

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        for stream in (self._take, self._from_server, self._to_server, self._outgoing):
            stream.close()
        await self._process.aclose()

    def _read(self, block: bytes) -> None:
        self._rest += block
        if b"\n" not in block:
            if len(self._rest) > LONGEST_MESSAGE:
                self._end("it wrote a message that is too long")
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            if line.strip() and not self._ending.done():
                self._receive(line)

    def _receive(self, line: bytes) -> None:
        if len(line) > LONGEST_MESSAGE:
            self._end("it wrote a message that is too long")
            return
        with suppress(ValueError, RecursionError):  # no message, but a line that some library printed
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            try:
                self._take.send_nowait(SessionMessage(message))
            except anyio.WouldBlock:
                self._end("it wrote more than can be read")
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

    def _end(self, reason: str) -> None:
        self._rest.clear()
        if not self._ending.done():
            self._ending.set_result(reason or "it was stopped")
        self._take.close()

    async def _write(self) -> None:
        async for sent in self._outgoing:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await self._process.send(line.encode() + b"\n")
            except OSError:
                self._end("it no longer reads what it is told")
                return


def _tools(pages: Iterable[types.ListToolsResult]) -> Iterator[RemoteTool]:
    for one in (one for page in pages for one in page.tools):
        schema = dict(one.input_schema)
        if TOOL_NAME.fullmatch(one.name) and len(json.dumps(schema)) <= LONGEST_SCHEMA:
            said = cut(plain(one.description or one.title or ""), LONGEST_DESCRIPTION)
            yield RemoteTool(name=one.name, description=said, parameters=schema)


def _prompts(pages: Iterable[types.ListPromptsResult]) -> Iterator[RemotePrompt]:
    for one in (one for page in pages for one in page.prompts):
        if TOOL_NAME.fullmatch(one.name):
            names = {one_line(each.name, _NAME): each.required for each in one.arguments or ()}
            required = tuple(name for name, needed in names.items() if needed)
            yield RemotePrompt(name=one.name, arguments=tuple(names), required=required)


def _addresses(pages: Iterable[types.ListResourcesResult]) -> Iterator[str]:
    addresses = (str(one.uri) for page in pages for one in page.resources)
    return (uri for uri in addresses if uri == one_line(uri, _ADDRESS))


def _fault(error: MCPError) -> RemoteFault:
    code = error.error.code
    return RemoteFault(error.error.message, lost=code in _GONE, unsent=code == UNSENT)


def _us() -> types.Implementation:
    return types.Implementation(name="duckflow", version=__version__)


def _shown(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.EmbeddedResource():
            return _content(block.resource)
        case types.ResourceLink():
            return f"[resource {block.uri}]"
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4} bytes, not shown]"


def _content(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(resource, types.TextResourceContents):
        return resource.text
    return f"[{resource.mime_type or 'binary'}, {len(resource.blob) * 3 // 4} bytes, not shown]"
