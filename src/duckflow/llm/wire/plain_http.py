"""HTTP without TLS and proxies, for servers on this machine; avoids importing the slow HTTP library."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from time import monotonic
from urllib.parse import SplitResult, urlsplit

from duckflow.llm.endpoints import Endpoint, is_loopback
from duckflow.llm.wire.errors import lost, not_understood

CONNECT_TIMEOUT_S = 15.0
IDLE_S = 5.0
"""Longest idle time after which a connection is reused; servers close idle ones after a while."""

_PIECE = 65_536
_MOST_HEADERS = 200
_NO_BODY = (204, 304)
_HEX = frozenset(b"0123456789abcdefABCDEF")


class PlainAnswer:
    """Answer with status, headers (names in lower case), and a body to stream."""

    def __init__(self, reader: asyncio.StreamReader, status: int, headers: Mapping[str, str]) -> None:
        self._reader = reader
        self.status_code = status
        self.headers = headers
        self.ended = False
        """True if the body was read completely and the connection can be reused."""

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        """Yield the body in pieces."""
        length = self.headers.get("content-length")
        if self.status_code in _NO_BODY:
            pass
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := _size(await _line(self._reader)):
                async for piece in self._exactly(size):
                    yield piece
                await _line(self._reader)
            while await _line(self._reader):
                pass
        elif length is not None:
            if not (length.isascii() and length.isdecimal()):
                raise ValueError("content-length")
            async for piece in self._exactly(int(length)):
                yield piece
        else:
            while piece := await self._reader.read(_PIECE):
                yield piece
            return  # the body ends with the connection
        self.ended = self.headers.get("connection", "keep-alive").lower() != "close"

    async def _exactly(self, size: int) -> AsyncGenerator[bytes]:
        while size:
            piece = await self._reader.read(min(size, _PIECE))
            if not piece:
                raise EOFError("the connection was closed")
            size -= len(piece)
            yield piece


class PlainClient:
    """HTTP client for a server on this machine; reuses connections. Raises only our own errors."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    @asynccontextmanager
    async def stream(self, method: str, address: str, content: bytes = b"") -> AsyncGenerator[PlainAnswer]:
        """Send a request and read its answer in the block. Close the connection if some of it is unread."""
        parts = urlsplit(address)
        reader, writer = await self._take() or await self._connect(parts)
        answer = None
        try:
            writer.write(self._head(method, parts, len(content)) + content)
            with suppress(ConnectionError):  # a server may refuse a request before it has read all of it
                await writer.drain()
            answer = await _read_head(reader)
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise not_understood(self._endpoint, "an encoding that was not requested")
            yield answer
        except (OSError, EOFError, ValueError) as exc:
            raise lost("llm.cut_off", self._endpoint, exc) from exc
        finally:
            if answer is not None and answer.ended:
                self._idle.append((monotonic(), reader, writer))
            else:
                await _close(writer, abort=True)

    async def aclose(self) -> None:
        """Close all connections."""
        while self._idle:
            await _close(self._idle.pop()[-1])

    async def _take(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if monotonic() - since < IDLE_S and not reader.at_eof() and not writer.is_closing():
                return reader, writer
            await _close(writer)
        return None

    async def _connect(self, parts: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await asyncio.open_connection(parts.hostname, parts.port or 80)
        except OSError as exc:
            raise lost("llm.unreachable", self._endpoint, exc) from exc

    def _head(self, method: str, parts: SplitResult, length: int) -> bytes:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Host": parts.netloc, **self._headers, "Content-Length": str(length)}
        lines = (f"{name}: {value}" for name, value in headers.items())
        return "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "", "")).encode("ascii")


def speaks_plainly(endpoint: Endpoint) -> bool:
    """Return True if PlainClient can serve the endpoint: on this machine, no TLS, no unusual characters."""
    address = endpoint.address
    usual = address.isascii() and address.isprintable() and not set(address) & set("@ %#?\\")
    return usual and address.startswith("http://") and is_loopback(address)


async def _close(writer: asyncio.StreamWriter, *, abort: bool = False) -> None:
    if abort:
        writer.transport.abort()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _read_head(reader: asyncio.StreamReader) -> PlainAnswer:
    while True:
        version, _, rest = (await _line(reader)).partition(b" ")
        if not version.startswith(b"HTTP/1.") or not (rest[:3].isdigit() and rest[3:4] in (b"", b" ")):
            raise ValueError("the answer is no HTTP")
        headers: dict[str, str] = {} if version == b"HTTP/1.1" else {"connection": "close"}
        while line := await _line(reader):
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or len(headers) > _MOST_HEADERS:
                raise ValueError("a header")
            headers[name.lower()] = value.strip()
        if int(rest[:3]) >= 200:  # skips interim answers (1xx)
            return PlainAnswer(reader, int(rest[:3]), headers)


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection was closed")
    return line.rstrip(b"\r\n")


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 15 or not set(digits) <= _HEX:
        raise ValueError("the size of a chunk")
    return int(digits, 16)
