"""HTTP client with TLS, certificates and proxies, based on httpx2; same interface as `plain_http`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx2

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.llm.endpoints import Endpoint, is_loopback
from duckflow.llm.wire.errors import lost
from duckflow.llm.wire.plain_http import CONNECT_TIMEOUT_S

TRANSPORT: tuple[tuple[tuple[type[Exception], ...], type[ProviderError], str], ...] = (
    ((httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.ProxyError), Unavailable, "llm.unreachable"),
    ((httpx2.UnsupportedProtocol, httpx2.LocalProtocolError), ProviderError, "llm.unreachable"),
    ((httpx2.InvalidURL,), ProviderError, "llm.unreachable"),
    ((httpx2.DecodingError,), ProviderError, "llm.not_understood"),
    ((httpx2.TransportError,), Unavailable, "llm.cut_off"),
)
"""Our error and its key by groups of httpx2 exceptions. The first match counts, and subclasses come first."""

TRANSPORT_ERRORS: tuple[type[Exception], ...] = tuple(kind for kinds, *_ in TRANSPORT for kind in kinds)


def transport_failure(exc: Exception, endpoint: Endpoint) -> ProviderError:
    """Return our error for an exception of the HTTP library."""
    error, key = next((error, key) for kinds, error, key in TRANSPORT if isinstance(exc, kinds))
    return lost(key, endpoint, exc, error)


class LibraryClient:
    """HTTP client for one endpoint, based on the HTTP library. Raises only our own errors."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        loopback = is_loopback(endpoint.address)
        try:
            # The caller limits the time of the whole call, so reading has no limit here.
            self._client = httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
                # A proxy can't reach our loopback, and without TLS there are no certificates to load.
                trust_env=not loopback,
                verify=not loopback or endpoint.address.startswith("https:"),
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as exc:
            raise ProviderError("llm.bad_proxy", detail=str(exc)) from exc

    @asynccontextmanager
    async def stream(
        self, method: str, address: str, content: bytes = b""
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request, and read the answer inside the `async with` block."""
        try:
            async with self._client.stream(method, address, content=content or None) as response:
                yield response
        except TRANSPORT_ERRORS as exc:
            raise transport_failure(exc, self._endpoint) from exc

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()
