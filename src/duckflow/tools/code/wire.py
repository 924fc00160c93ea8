"""Messages to and from a language server: JSON-RPC over the streams of a sandboxed process.

Plain dicts and a hundred lines instead of a library: those for clients bring attrs, cattrs and classes for
the whole protocol, want to start the process themselves, and refuse what servers of today send beside it.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any, Protocol, cast

from duckflow.safety.sandbox.server_process import ServerProcess

Json = dict[str, Any]
JsonValue = Any  # any part of a message

LARGEST_MESSAGE = 64_000_000
_LONGEST_HEADER = 4_000
_RETRIES, _RETRY_S = 3, 0.2
_CHANGED_MEANWHILE = (-32801, -32802)
"""Error codes of a request that the server wants to get again: the content changed, or it was busy."""
_NO_SUCH_METHOD = -32601


def as_dict(value: JsonValue) -> Json:
    """Return an object of a message; an empty one if the server sent something else."""
    return cast("Json", value) if isinstance(value, dict) else {}


class ServerFault(Exception):
    """Failure of a language server, in words that end a sentence. `gone`: the server no longer runs."""

    def __init__(self, said: str, *, gone: bool = False) -> None:
        super().__init__(said)
        self.gone = gone


class ServerEvents(Protocol):
    """Receives what a server sends without being asked."""

    def asked(self, method: str, params: JsonValue) -> JsonValue:
        """Return the answer to a question of the server, or NotImplemented for an unknown question."""

    def noticed(self, method: str, params: JsonValue) -> None:
        """Take note of a notification."""


class LspConnection:
    """Connection to one server from its start to its end."""

    def __init__(self, process: ServerProcess, listener: ServerEvents) -> None:
        self._process = process
        self._listener = listener
        self._received = bytearray()
        self._length: int | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._count = 0
        self.ended = ""
        """Reason why the server ended, or empty while it runs."""

    async def start(self) -> None:
        """Start the process. Raise ToolError if that is impossible."""
        await self._process.start(self._take, self._end)

    async def request(self, method: str, params: JsonValue, seconds: float) -> JsonValue:
        """Return the server's answer. Raise TimeoutError, or ServerFault for an error."""
        for left in reversed(range(_RETRIES)):
            answer = await self._ask(method, params, seconds)
            error = answer.get("error")
            if error is None:
                return answer.get("result")
            if not isinstance(error, dict):
                raise ServerFault("it answered with an error")
            told = cast("Json", error)
            if told.get("code") not in _CHANGED_MEANWHILE or not left:
                raise ServerFault(f"it answered: {str(told.get('message') or 'an error')[:300]}")
            await asyncio.sleep(_RETRY_S)
        raise AssertionError

    async def notify(self, method: str, params: JsonValue) -> None:
        """Send a notification."""
        await self._send({"method": method, "params": params})

    async def aclose(self) -> None:
        """End the server with all its processes."""
        for task in self._answering:
            task.cancel()
        await self._process.aclose()
        self._end("it was stopped")

    async def _ask(self, method: str, params: JsonValue, seconds: float) -> Json:
        self._count += 1
        number = self._count
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            async with asyncio.timeout(seconds):
                return await answer
        except (TimeoutError, asyncio.CancelledError):
            with suppress(ServerFault):
                await self._send({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            self._waiting.pop(number, None)

    async def _send(self, message: Json) -> None:
        if self.ended:
            raise ServerFault(self.ended, gone=True)
        data = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with self._sending:
                await self._process.send(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        except OSError as exc:
            raise ServerFault(self.ended or "it no longer reads its input", gone=True) from exc

    def _take(self, block: bytes) -> None:
        if self.ended:
            return
        self._received += block
        while (message := self._next()) is not None:
            try:
                read = json.loads(message.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                self._end("it wrote a message that is not JSON")
                return
            self._dispatch(read)

    def _next(self) -> bytes | None:
        """Return the next whole message that was received."""
        if self._length is None:
            header, mark, rest = bytes(self._received[:_LONGEST_HEADER]).partition(b"\r\n\r\n")
            if not mark:
                if len(self._received) >= _LONGEST_HEADER:
                    self._end("it wrote something that is no message of a language server")
                return None
            del self._received[: len(header) + len(mark)]
            self._length = _length_in(header)
            if self._length is None or self._length > LARGEST_MESSAGE:
                self._end("it wrote something that is no message of a language server")
                return None
            del rest
        if len(self._received) < self._length:
            return None
        message = bytes(self._received[: self._length])
        del self._received[: self._length]
        self._length = None
        return message

    def _dispatch(self, message: JsonValue) -> None:
        if not isinstance(message, dict):
            return
        said = cast("Json", message)
        method, number = said.get("method"), said.get("id")
        if isinstance(method, str) and number is not None:
            task = asyncio.ensure_future(self._answer(number, method, said.get("params")))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif isinstance(method, str):
            self._listener.noticed(method, said.get("params"))
        elif isinstance(number, int) and (waiting := self._waiting.get(number)) and not waiting.done():
            waiting.set_result(said)

    async def _answer(self, number: JsonValue, method: str, params: JsonValue) -> None:
        answer = self._listener.asked(method, params)
        unknown = {"error": {"code": _NO_SUCH_METHOD, "message": f"no {method} here"}}
        with suppress(ServerFault):
            await self._send({"id": number, **(unknown if answer is NotImplemented else {"result": answer})})

    def _end(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = reason or "it ended"
        self._received.clear()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ServerFault(self.ended, gone=True))


def _length_in(header: bytes) -> int | None:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return None
