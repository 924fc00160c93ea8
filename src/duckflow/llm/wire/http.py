"""HTTP connections of the wire formats: read events within size limits, and translate errors."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from duckflow.config.version import __version__
from duckflow.domain.errors import ProviderError
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.streams import MAX_ANSWER_BYTES, bounded, closing
from duckflow.llm.wire.errors import not_understood, status_failure, wait_of
from duckflow.llm.wire.plain_http import PlainAnswer, PlainClient, speaks_plainly

if TYPE_CHECKING:
    import httpx2

    from duckflow.llm.wire.library_http import LibraryClient

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024


class HttpConnection:
    """Connection to one endpoint. Raises only our own errors."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self._headers = {
            "User-Agent": f"duckflow/{__version__}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            **headers,
        }
        self._client: PlainClient | LibraryClient | None = None

    def post(self, path: str, body: Mapping[str, Any], seconds: float) -> AsyncGenerator[str]:
        """Send a request and yield the data of each event; a plain JSON answer counts as one event."""
        return bounded(self._events(path, body), seconds)

    async def aclose(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[str]:
        if self._client is None:
            self._client = open_http(self.endpoint, self._headers)
        # Lone surrogates, as in broken files, have no UTF-8 form; they must not stop the call.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        async with self._client.stream("POST", self.endpoint.address + path, content) as answer:
            if answer.status_code != 200:
                said = (await read_body(answer, MAX_ERROR_BYTES)).decode("utf-8", "replace")
                wait = wait_of(answer.headers)
                raise status_failure(self.endpoint, answer.status_code, said, wait)
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "application/json":
                whole = await read_body(answer, MAX_EVENT_BYTES + 1)
                self._check(len(whole), MAX_EVENT_BYTES)
                yield whole.decode("utf-8", "replace")
                return
            if kind != "text/event-stream":
                raise not_understood(self.endpoint, f"content type {kind or 'missing'}")
            size = 0
            async with closing(self._event_data(answer.aiter_bytes())) as events:
                async for data in events:
                    size += len(data)
                    self._check(size, MAX_ANSWER_BYTES)
                    yield data.decode("utf-8", "replace")

    async def _event_data(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        data: list[bytes] = []
        size, rest = 0, bytearray()
        async for piece in pieces:
            rest += piece
            if b"\n" in piece or b"\r" in piece:
                lines = rest.splitlines(keepends=True)
                # The last line may be incomplete: a \r may be half of a \r\n.
                rest = bytearray() if lines[-1].endswith(b"\n") else lines.pop()
                for line in (bytes(line.rstrip(b"\r\n")) for line in lines):
                    size += len(line)
                    self._check(size, MAX_EVENT_BYTES)
                    if line.startswith(b"data:"):
                        data.append(line[5:].removeprefix(b" "))
                    elif not line:
                        if any(data):
                            yield b"\n".join(data)
                        data, size = [], 0
            self._check(size + len(rest), MAX_EVENT_BYTES)

    def _check(self, size: int, limit: int) -> None:
        if size > limit:
            raise ProviderError("llm.too_large", address=self.endpoint.shown_address, detail=f"{size} bytes")


async def read_body(answer: "PlainAnswer | httpx2.Response", limit: int) -> bytes:
    """Return at most `limit` bytes of an answer."""
    content = bytearray()
    async with closing(answer.aiter_bytes()) as pieces:
        async for piece in pieces:
            content += piece
            if len(content) >= limit:
                break
    return bytes(content[:limit])


async def get_json(endpoint: Endpoint, address: str, limit: int) -> bytes:
    """Fetch `address` over a separate connection, and return at most `limit` bytes."""
    client = open_http(endpoint, {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {})
    try:
        async with client.stream("GET", address) as answer:
            if answer.status_code != 200:
                raise status_failure(endpoint, answer.status_code)
            return await read_body(answer, limit)
    finally:
        await client.aclose()


def open_http(endpoint: Endpoint, headers: Mapping[str, str]) -> "PlainClient | LibraryClient":
    """Return an HTTP client for this endpoint."""
    if speaks_plainly(endpoint):
        return PlainClient(endpoint, headers)
    from duckflow.llm.wire.library_http import LibraryClient  # noqa: PLC0415 - slow; not for local servers

    return LibraryClient(endpoint, headers)
