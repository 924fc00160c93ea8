"""Connections with the client of the `mcp` package. Import this in a thread, because it takes seconds."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from itertools import islice
from typing import Any, TypeVar, cast

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
from duckflow.safety.uncancelled import shielded
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
    too_slow,
)

_WAITING = 1_000
_PAGES = 20
_CONNECT_S = 30.0
_IDLE_S = 3_600.0
_NAME, _ADDRESS = 100, 1_000
_PICTURES, _MEDIA = 5, ("image/png", "image/jpeg", "image/gif", "image/webp")
_US = types.Implementation(name="duckflow", version=__version__)
_GONE = (-32000, -32001, -32600, UNSENT, BAD_STATUS)
"""Error codes, of the package and of Duckflow, for a connection or a session that no longer exists."""

T = TypeVar("T")
Page = TypeVar("Page", bound=types.PaginatedResult)
logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it would log the messages of servers, with tracebacks


class UserQuestions:
    """Questions of a server to the user. The call stays open while the model asks the user."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        """Set when a question waits for an answer and the model was not told yet."""
        self.text = ""
        self._answers: Mapping[str, Any] | None = None
        self._answered = asyncio.Event()
        self._in_turn = asyncio.Lock()

    def answer(self, answers: Mapping[str, Any] | None) -> None:
        """Answer the open question and those that follow: {} declines them, None leaves them open."""
        self._answers = answers
        self.open.clear()
        self._answered.set()

    async def __call__(self, context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Return the user's answer to a question, as soon as there is one that fits."""
        del context
        form = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
        wanted = json.dumps(form["properties"], ensure_ascii=False) if form else getattr(params, "url", "")
        async with self._in_turn:
            while (result := self._result(form)) is None:
                self.text = cut(plain(f"{params.message} ({wanted})"), LONGEST_DESCRIPTION)
                self._answered.clear()
                self.open.set()
                await self._answered.wait()
            return result

    def _result(self, form: Mapping[str, Any]) -> types.ElicitResult | None:
        if self._answers is None:
            return None
        if not self._answers:
            return types.ElicitResult(action="decline")
        if all(name in self._answers for name in cast("list[str]", form.get("required") or [])):
            with suppress(ValueError):
                return types.ElicitResult(action="accept", content=dict(self._answers) if form else None)
        return None


class ConnectedServer:
    """Server with an open connection."""

    def __init__(self, client: Client, ending: "asyncio.Future[str]", questions: UserQuestions) -> None:
        self._client = client
        self._questions = questions
        self._waiting: dict[tuple[str, str], asyncio.Task[types.CallToolResult]] = {}
        self.ending = ending
        """Reason why the program ended. Never set for a server that is reached by its address."""

    async def offer(self) -> ServerOffer:
        """Return the tools, prompts and resources that the server offers, except unusable ones."""
        client, has = self._client, self._client.server_capabilities
        tools = await self._pages(has.tools, client.list_tools)
        prompts = await self._pages(has.prompts, client.list_prompts)
        resources = await self._pages(has.resources, client.list_resources)
        by_name = {tool.name: tool for tool in islice(_tools(tools), MOST_ITEMS)}
        return ServerOffer(
            version=client.protocol_version or "",
            instructions=cut(plain(client.instructions or ""), LONGEST_DESCRIPTION),
            tools=tuple(by_name.values()),
            prompts=tuple(islice(_prompts(prompts), MOST_ITEMS)),
            resources=tuple(islice(_addresses(resources), MOST_ITEMS)),
        )

    async def call(
        self, tool: str, arguments: dict[str, Any], answers: Mapping[str, Any] | None = None
    ) -> RemoteResult:
        """Call a tool. Return its result as text without terminal control. `answers` are the user's."""
        calling = self._waiting.pop((tool, json.dumps(arguments)), None) if answers is not None else None
        self._questions.answer(answers)
        if calling is None:
            calling = asyncio.create_task(self._asked(self._client.call_tool(tool, arguments)))
        asked = asyncio.create_task(self._questions.open.wait())
        try:
            await asyncio.wait({calling, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            calling.cancel()
            raise
        finally:
            asked.cancel()
        if not calling.done():
            self._keep(tool, arguments, calling)
            return RemoteResult(text="", asked=self._questions.text)
        result = calling.result()
        said = "\n".join(_shown(one) for one in result.content)
        if not said.strip() and result.structured_content is not None:
            said = json.dumps(result.structured_content, ensure_ascii=False)
        pictures = (_picture(one) for one in result.content)
        shown = tuple(one for one in pictures if one)[:_PICTURES]
        return RemoteResult(text=plain(said), failed=bool(result.is_error), pictures=shown)

    def close(self) -> None:
        """Cancel the calls whose questions were not answered."""
        for calling in self._waiting.values():
            calling.cancel()
        self._waiting.clear()

    def _keep(
        self, tool: str, arguments: dict[str, Any], calling: "asyncio.Task[types.CallToolResult]"
    ) -> None:
        """Keep a call open until its question is answered, or until the model asks something else."""
        self._questions.open.clear()
        self.close()
        calling.add_done_callback(lambda one: one.cancelled() or one.exception())
        self._waiting[tool, json.dumps(arguments)] = calling

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt."""
        got = await self._asked(self._client.get_prompt(name, arguments))
        return plain("\n\n".join(_shown(one.content) for one in got.messages))

    async def resource(self, uri: str) -> str:
        """Return the text of a resource."""
        got = await self._asked(self._client.read_resource(uri))
        return plain("\n".join(_content(one) for one in got.contents))

    async def _pages(self, offered: object, ask: Callable[..., Awaitable[Page]]) -> list[Page]:
        """Return all pages of a list. Empty if the server does not offer it."""
        pages: list[Page] = []
        cursor: str | None = None
        while offered is not None and len(pages) < _PAGES and (cursor or not pages):
            page = await self._asked(ask(cursor=cursor))
            pages.append(page)
            cursor = page.next_cursor
        return pages

    async def _asked(self, ask: Awaitable[T]) -> T:
        """Return the server's answer. Failures in the package or in the server become a RemoteFault."""
        asking = asyncio.ensure_future(ask)
        try:
            return await asyncio.shield(asking)
        except MCPError as exc:
            if self.ending.done():
                raise RemoteFault(self.ending.result(), lost=True) from exc
            code = exc.error.code
            raise RemoteFault(exc.error.message, lost=code in _GONE, unsent=code == UNSENT) from exc
        except TimeoutError:
            raise
        except Exception as exc:  # third-party library and server: any error becomes one sentence
            raise RemoteFault(f"{type(exc).__name__}: {exc}", lost=True) from exc
        finally:
            asking.cancel()


@asynccontextmanager
async def open_process(process: ServerProcess, seconds: float) -> AsyncGenerator[ConnectedServer]:
    """Start a program and connect to it over its standard input and output within this time."""
    ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    ask = UserQuestions()
    async with AsyncExitStack() as stack:
        connecting = Client(_pipes(process, ending), client_info=_US, cache=None, elicitation_callback=ask)
        try:
            async with asyncio.timeout(seconds):
                client = await stack.enter_async_context(connecting)
        except Exception as exc:
            if isinstance(exc, TimeoutError):
                said = f"; it said: {process.last_words}" if process.last_words else ""
                raise RemoteFault(f"{too_slow(seconds)}{said}") from exc
            if ending.done():
                raise RemoteFault(ending.result()) from exc
            raise
        with closing(ConnectedServer(client, ending, ask)) as server:
            yield server


@asynccontextmanager
async def open_address(
    url: str, headers: Mapping[str, str], seconds: float, signed_in: httpx2.Auth | None = None
) -> AsyncGenerator[ConnectedServer]:
    """Connect to an address over streamable HTTP or, if the server does not support it, over SSE."""
    ask = UserQuestions()
    ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connected(
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        auth = auth or signed_in
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, transport=BoundedTransport())

    async with AsyncExitStack() as stack:
        # Our own timeout has a clear message, and a call may wait for an answer of the user.
        timeout = httpx2.Timeout(_CONNECT_S, read=max(2 * seconds, _IDLE_S))
        http = await stack.enter_async_context(connected(headers, timeout))
        streams = streamable_http_client(url, http_client=http, max_sse_event_size=LONGEST_MESSAGE)
        try:
            client = await stack.enter_async_context(
                Client(streams, client_info=_US, cache=None, elicitation_callback=ask)
            )
        except Exception as error:
            first = first_of(error)
            if not isinstance(first, MCPError) or first.error.code != BAD_STATUS:
                raise
            older = sse_client(url, dict(headers), _CONNECT_S, _IDLE_S, connected)
            try:
                client = await stack.enter_async_context(
                    Client(older, client_info=_US, cache=None, mode="legacy", elicitation_callback=ask)
                )
            except Exception:  # noqa: BLE001 - it supports neither; the first reason is reported
                raise error from None
        with closing(ConnectedServer(client, ending, ask)) as server:
            yield server


@asynccontextmanager
async def _pipes(process: ServerProcess, ending: "asyncio.Future[str]") -> AsyncGenerator[Any]:
    """Transport for the package over our process; each line is a message of limited length."""
    lines = asyncio.StreamReader(LONGEST_MESSAGE)
    received, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](_WAITING)
    to_server, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    last_words: list[str] = []

    def ended(reason: str) -> None:
        last_words.append(reason or "it was stopped")
        lines.feed_eof()

    def stop(reason: str) -> None:
        if not ending.done():
            ending.set_result(reason)
        received.close()

    async def receive() -> None:
        try:
            async for line in lines:
                with suppress(ValueError, RecursionError):  # a line that a library printed
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    received.send_nowait(SessionMessage(message))
            stop(last_words[0])
        except ValueError:
            stop("it wrote a message that is too long")
        except anyio.WouldBlock:
            stop("it wrote more than can be read")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    async def send() -> None:
        try:
            async for sent in outgoing:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.send(line.encode() + b"\n")
        except OSError:
            stop("it no longer reads its input")

    with received, from_server, to_server, outgoing:
        try:
            await process.start(lines.feed_data, ended)
            working = [asyncio.create_task(receive()), asyncio.create_task(send())]
            try:
                yield from_server, to_server
            finally:
                for task in working:
                    task.cancel()
                await asyncio.wait(working)
        finally:
            await shielded(process.aclose())  # a second cancellation would leave its processes behind


def _tools(pages: Iterable[types.ListToolsResult]) -> Iterator[RemoteTool]:
    for one in (one for page in pages for one in page.tools):
        schema = dict(one.input_schema)
        if TOOL_NAME.fullmatch(one.name) and len(json.dumps(schema)) <= LONGEST_SCHEMA:
            said = cut(plain(one.description or one.title or ""), LONGEST_DESCRIPTION)
            reads_only = bool(one.annotations and one.annotations.read_only_hint)
            yield RemoteTool(name=one.name, description=said, parameters=schema, reads_only=reads_only)


def _prompts(pages: Iterable[types.ListPromptsResult]) -> Iterator[RemotePrompt]:
    for one in (one for page in pages for one in page.prompts):
        if TOOL_NAME.fullmatch(one.name):
            names = {one_line(each.name, _NAME): each.required for each in one.arguments or ()}
            required = tuple(name for name, needed in names.items() if needed)
            yield RemotePrompt(name=one.name, arguments=tuple(names), required=required)


def _addresses(pages: Iterable[types.ListResourcesResult]) -> Iterator[str]:
    addresses = (str(one.uri) for page in pages for one in page.resources)
    return (uri for uri in addresses if uri == one_line(uri, _ADDRESS))


def _shown(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.EmbeddedResource():
            return _content(block.resource)
        case types.ResourceLink():
            return f"[resource {block.uri}]"
        case types.ImageContent() if block.mime_type in _MEDIA:
            return f"[{block.mime_type}]"
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4} bytes, not shown]"


def _picture(block: types.ContentBlock) -> tuple[str, bytes] | None:
    """Return the media type and the bytes of a picture, if the block is one that models accept."""
    if isinstance(block, types.ImageContent) and block.mime_type in _MEDIA:
        with suppress(ValueError):
            return block.mime_type, base64.b64decode(block.data, validate=True)
    return None


def _content(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(resource, types.TextResourceContents):
        return resource.text
    return f"[{resource.mime_type or 'binary'}, {len(resource.blob) * 3 // 4} bytes, not shown]"
