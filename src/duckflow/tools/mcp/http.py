"""HTTP for the `mcp` client: answers are limited, and failures become messages about one request."""

from contextlib import aclosing, suppress

import httpx2
import mcp_types as types

LONGEST_MESSAGE = 4_000_000
"""Largest message of a server, in bytes. A server that writes more counts as ended."""
UNSENT = -32098
"""Code for a request that no server received: it is unreachable, or does not know the session."""
BAD_STATUS = -32099
"""Code for an answer that is an HTTP error instead of a message."""
_SESSION = "mcp-session-id"
_EVENTS = "text/event-stream"
_NOT_FOUND = 404


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Transport that limits the length of answers and does not follow redirects.

    Failures become error messages of the protocol, so that each ends only its own request.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read its answer up to the limit. The client limits events itself."""
        try:
            response = await super().handle_async_request(request)
            if response.is_success and response.headers.get("content-type", "").startswith(_EVENTS):
                return response
            said = b""
            async with aclosing(response):
                async for block in response.aiter_raw():
                    said += block
                    if len(said) > LONGEST_MESSAGE:
                        return _refusal(502, BAD_STATUS, "its answer is too long")
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
            return _refusal(503, UNSENT, f"it can't be reached at {request.url.host} ({exc})")
        except httpx2.ReadTimeout:
            return _refusal(504, types.INTERNAL_ERROR, "it did not answer in time")
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            return _refusal(502, BAD_STATUS, "it closed the connection without an answer")
        if response.is_error and request.method == "POST":
            return _error(request, response, said)
        return httpx2.Response(response.status_code, headers=response.headers, content=said)


def _error(request: httpx2.Request, response: httpx2.Response, said: bytes) -> httpx2.Response:
    """Convert an HTTP error to an error of the protocol, with the server's message if it contains one."""
    if response.status_code == _NOT_FOUND and _SESSION in request.headers:
        return _refusal(_NOT_FOUND, UNSENT, "its session has expired")
    with suppress(ValueError, RecursionError):  # a page of the web server
        told = types.jsonrpc_message_adapter.validate_json(said, by_name=False)
        if isinstance(told, types.JSONRPCError):
            return _refusal(response.status_code, told.error.code, told.error.message, told.error.data)
    phrase = f"{response.status_code} {response.reason_phrase}".strip()
    refusal = _refusal(response.status_code, BAD_STATUS, f"it answered with HTTP {phrase}")
    if "www-authenticate" in response.headers:  # it says where to sign in
        refusal.headers["www-authenticate"] = response.headers["www-authenticate"]
    return refusal


def _refusal(status: int, code: int, message: str, data: object = None) -> httpx2.Response:
    error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})
