"""What the HTTP clients share: a connection pool, events within limits, our errors for foreign ones."""

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2

from duckflow import __version__
from duckflow.domain.errors import ProviderError
from duckflow.llm.streams import MAX_ANSWER_BYTES, bounded, closing
from duckflow.llm.wire.endpoints import Endpoint, is_loopback
from duckflow.llm.wire.errors import TRANSPORT_ERRORS, not_understood, status_failure, transport_failure

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
CONNECT_TIMEOUT_S = 15.0


class HttpConnection:
    """Requests to one endpoint. Raises our errors only."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self._headers = {
            "User-Agent": f"duckflow/{__version__}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            **headers,
        }
        self._client: httpx2.AsyncClient | None = None

    def post(self, path: str, body: Mapping[str, Any], seconds: float) -> AsyncGenerator[str]:
        """The data of each event of the answer; a plain JSON answer counts as one event."""
        return bounded(self._events(path, body), seconds)

    async def aclose(self) -> None:
        """Close what is open."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[str]:
        try:
            client = self._open()
            # Half a surrogate pair, as broken files have them, has no UTF-8; it must not stop the call.
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            async with (
                client.stream("POST", self.endpoint.address + path, content=content) as response,
                closing(self._answer(response)) as answer,
            ):
                async for data in answer:
                    yield data
        except TRANSPORT_ERRORS as exc:
            raise transport_failure(exc, self.endpoint) from exc

    async def _answer(self, response: httpx2.Response) -> AsyncGenerator[str]:
        if response.status_code != 200:
            said = await read_body(response, MAX_ERROR_BYTES)
            text = said.decode("utf-8", "replace")
            raise status_failure(
                self.endpoint, response.status_code, text, response.headers.get("retry-after")
            )
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            whole = await read_body(response, MAX_EVENT_BYTES + 1)
            self._check(len(whole), MAX_EVENT_BYTES)
            yield whole.decode("utf-8", "replace")
            return
        if kind != "text/event-stream":
            raise not_understood(self.endpoint, f"content type {kind or 'missing'}")
        size = 0
        async with closing(aiter(httpx2.EventSource(response, max_event_size=MAX_EVENT_BYTES))) as events:
            async for event in events:
                size += len(event.data.encode("utf-8", "replace"))
                self._check(size, MAX_ANSWER_BYTES)
                yield event.data

    def _check(self, size: int, limit: int) -> None:
        if size > limit:
            raise ProviderError("llm.too_large", address=self.endpoint.shown_address, detail=f"{size} bytes")

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = open_http(self.endpoint, self._headers)
        return self._client


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """At most `limit` bytes of an answer."""
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) >= limit:
            break
    return bytes(content[:limit])


async def get_json(endpoint: Endpoint, address: str, limit: int) -> bytes:
    """What `address` answers to a plain question, in a connection of its own."""
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    try:
        async with open_http(endpoint, headers) as client, client.stream("GET", address) as response:
            if response.status_code != 200:
                raise status_failure(endpoint, response.status_code)
            return await read_body(response, limit)
    except TRANSPORT_ERRORS as exc:
        raise transport_failure(exc, endpoint) from exc


def open_http(endpoint: Endpoint, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """A client for this endpoint. Times are limited around whole calls, so reading has no limit here."""
    loopback = is_loopback(endpoint.address)
    try:
        return httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            # A proxy can't reach our own loopback, and without TLS there are no certificates to load.
            trust_env=not loopback,
            verify=not loopback or endpoint.address.startswith("https:"),
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as exc:
        raise ProviderError("llm.bad_proxy", detail=str(exc)) from exc
