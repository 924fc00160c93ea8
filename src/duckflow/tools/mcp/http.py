"""HTTP for the `mcp` client: answers are bounded, and what goes wrong is a message about one request."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types

LONGEST_MESSAGE = 4_000_000
"""Bytes of one message of a server; one that writes more has ended."""
UNSENT = -32098
"""Our code for what no server has taken up: it could not be reached, or did not know our session any more."""
BAD_STATUS = -32099
"""Our code for an answer that is an error of HTTP, no message."""
_SESSION = "mcp-session-id"
_FIRST_ERROR, _NOT_FOUND = 400, 404


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Lets no answer grow past what a message may have, and follows nobody elsewhere.

    What went wrong is told as a message, so that it ends the one request it is about, and in plain words.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer with its length counted; a stream of events is bounded event by event."""
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
            return _refusal(503, UNSENT, f"it can't be reached at {request.url.host} ({exc})")
        except httpx2.ReadTimeout:
            return _refusal(504, types.INTERNAL_ERROR, "it did not answer in time")
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            return _refusal(502, BAD_STATUS, "it closed the connection without an answer")
        if response.status_code >= _FIRST_ERROR and request.method == "POST":
            return await _refused(request, response)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Counted(response.stream)  # pyright: ignore[reportArgumentType] - async here
        return response

    async def aclose(self) -> None:
        """Close connections."""
        await self._inner.aclose()


async def _refused(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """An error of HTTP, with the message in it if it has one."""
    said = b""
    async for block in _Counted(response.stream):
        said += block
    await response.aclose()
    if response.status_code == _NOT_FOUND and _SESSION in request.headers:
        return _refusal(_NOT_FOUND, UNSENT, "its session has expired")
    try:
        told = types.jsonrpc_message_adapter.validate_json(said, by_name=False)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, types.JSONRPCError):
        return _refusal(response.status_code, told.error.code, told.error.message, told.error.data)
    phrase = f"{response.status_code} {response.reason_phrase}".strip()
    return _refusal(response.status_code, BAD_STATUS, f"it answered with HTTP {phrase}")


def _refusal(status: int, code: int, message: str, data: object = None) -> httpx2.Response:
    error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - one of several kinds
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for block in self._inner:
            size += len(block)
            if size > LONGEST_MESSAGE:
                raise httpx2.ReadError("the answer is too long")
            yield block

    async def aclose(self) -> None:
        await self._inner.aclose()
