"""Gateway: the only way from a command's own network to the hosts that the user allowed (SAFETY 22).

A proxy for HTTP and CONNECT. The command's process opens the socket inside its network and passes it on, and
Duckflow accepts the connections. Names are resolved here, and only the addresses that were checked are used.
"""

import asyncio
import base64
import re
import socket
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from duckflow.domain.hosts import REGISTRIES, covers, read_host
from duckflow.domain.session_events import ContactOutcome, HostContacted
from duckflow.safety.addresses import NotPublic, resolve

_HEAD = re.compile(rb"([A-Z]{3,10}) (?:http://)?([A-Za-z0-9_.-]{1,253})(?::(\d{1,5}))?(/\S*)? HTTP/1\.[01]")
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*")
_OWN_HEADERS = (b"host", b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization")
_GIT = re.compile(rb"/(info/refs\?service=git-|git-(upload|receive)-pack$)")
_ECHOING = (b"TRACE", b"TRACK", b"DEBUG")
"""Methods by which a server could send a lent token back."""
_MOST_HEAD = 1 << 16
_MOST_AT_ONCE = 200
"""Connections of one command at a time, so that it can't use up Duckflow's descriptors."""
_MOST_RESOLVED = 3
"""Names looked up at a time: each lookup holds a thread that Duckflow needs for its own work."""
_MOST_NAMED = 500
"""Largest number of refused or unreachable hosts reported, so that a command can't fill the audit log."""
_BLOCK = 1 << 16
_PATIENCE_S = 30.0
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

Contacted = Callable[[HostContacted], None]


class _Refused(Exception):
    """Raised with the status line and text of the proxy's answer."""


class _Wanted(NamedTuple):
    host: str
    port: int
    forward: bytes
    """Bytes to send to the host first; none for CONNECT."""
    lent: bool = False
    """True if the request carries a token, and so goes out encrypted."""

    @property
    def name(self) -> str:
        """The host as a grant names it: with its port, unless that is the usual one."""
        return self.host if self.port == (80 if self.forward else 443) else f"{self.host}:{self.port}"


class Gateway:
    """Proxy of one command. Each contact is reported to `contacted` as it happens."""

    def __init__(
        self, hosts: Collection[str], contacted: Contacted, *, private: bool, tokens: Mapping[str, str]
    ) -> None:
        """`private`: hosts may be in private networks. `tokens` by host go with requests in plain HTTP."""
        self._hosts = hosts
        self._contacted = contacted
        self._private = private
        self._tokens = tokens
        self._in_vain: set[tuple[str, ContactOutcome]] = set()
        self._refused: dict[str, None] = {}
        self._server: asyncio.Server | None = None
        self._closed = False
        self._resolving = asyncio.Semaphore(_MOST_RESOLVED)
        self._talking: set[asyncio.Task[None]] = set()

    @property
    def refused(self) -> tuple[str, ...]:
        """Hosts that the command tried to reach and may not."""
        return tuple(self._refused)

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections on a socket inside the command's network."""
        listening.setblocking(False)
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=_MOST_HEAD)

    async def aclose(self) -> None:
        """End all connections."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for one in self._talking:
            one.cancel()
        await asyncio.gather(*self._talking, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer in a task of our own: asyncio would print a traceback when it is cancelled."""
        if self._closed or len(self._talking) >= _MOST_AT_ONCE:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._talk(reader, writer))
        self._talking.add(task)
        task.add_done_callback(self._talking.discard)
        task.add_done_callback(lambda _: writer.close())

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            await self._answer(reader, writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
            wanted = _read_head(head, self._tokens)
            theirs, to_them = await self._connect(wanted)
        except _Refused as exc:
            status, text = exc.args
            body = f"{text}\n".encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
            return
        if wanted.forward:
            to_them.write(wanted.forward)
        else:
            writer.write(_ESTABLISHED)
        try:
            await asyncio.gather(_pass_on(reader, to_them), _pass_on(theirs, writer))
        except asyncio.CancelledError:
            to_them.transport.abort()  # a host that reads nothing would keep the connection open
            writer.transport.abort()
            raise
        finally:
            to_them.close()

    async def _connect(self, wanted: _Wanted) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = wanted.host, wanted.port
        if wanted.name == REGISTRIES or not covers(self._hosts, wanted.name):
            self._report(wanted, "refused")
            raise _Refused("403 Forbidden", f"Duckflow: the user has not allowed {wanted.name}.")
        try:
            async with asyncio.timeout(_PATIENCE_S), self._resolving:
                numbers = await resolve(host, port, private=self._private)
        except NotPublic as exc:
            self._report(wanted, "refused")
            raise _Refused("403 Forbidden", f"Duckflow: {exc}, where nothing may be reached.") from exc
        except (OSError, OverflowError) as exc:  # a port above 65535 overflows
            self._report(wanted, "failed")
            raise _Refused("502 Bad Gateway", f"Duckflow: {host} can't be found.") from exc
        secure = ssl.create_default_context() if wanted.lent else None
        port = 443 if wanted.lent and port == 80 else port
        for number in numbers:
            with suppress(OSError, OverflowError):
                async with asyncio.timeout(_PATIENCE_S):
                    opened = await asyncio.open_connection(
                        number, port, ssl=secure, server_hostname=host if secure else None
                    )
                self._report(wanted, "connected")
                return opened
        self._report(wanted, "failed")
        raise _Refused("502 Bad Gateway", f"Duckflow: {host} can't be reached.")

    def _report(self, wanted: _Wanted, outcome: ContactOutcome) -> None:
        if outcome != "connected":
            if (known := (wanted.name, outcome)) in self._in_vain or len(self._in_vain) >= _MOST_NAMED:
                return
            self._in_vain.add(known)
        if outcome == "refused":
            self._refused[wanted.name] = None
        self._contacted(HostContacted(host=wanted.host, port=wanted.port, outcome=outcome))


def _read_head(head: bytes, tokens: Mapping[str, str]) -> _Wanted:
    """Parse the request to the proxy. Only whole addresses are accepted."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    found = _HEAD.fullmatch(first)
    if found is None or not all(map(_HEADER.fullmatch, lines)):
        raise _Refused("400 Bad Request", "Duckflow: this is no request that a proxy understands.")
    method, name, number, path = found.groups()
    host, connects = name.decode("ascii").lower().removesuffix("."), method == b"CONNECT"
    usual = 443 if connects else 80
    if connects == (b"://" in first.split(b" ")[1]) or (connects and path):
        raise _Refused("400 Bad Request", "Duckflow: this is no request that a proxy understands.")
    port = int(number or usual)
    try:
        read_host(f"{host}:{port}")
    except ValueError as exc:
        raise _Refused("400 Bad Request", "Duckflow: this is no name of a host.") from exc
    if connects:
        return _Wanted(host, port, b"")
    # One request a connection: what follows the first one can't go to another host.
    kept = [one for one in lines if one.partition(b":")[0].lower() not in _OWN_HEADERS]
    token = tokens.get(f"{host}:{port}" if port != usual else host)
    if token is not None:
        if method in _ECHOING:
            raise _Refused("405 Method Not Allowed", "Duckflow: this method can't carry a lent token.")
        kept = [one for one in kept if not one.lower().startswith(b"authorization:")]
        kept.append(_authorization(path or b"/", token))
    start = b" ".join((method, path or b"/", b"HTTP/1.1"))
    rest = b"\r\n".join(
        (start, b"Host: " + name + (b":" + number if number else b""), b"Connection: close", *kept, b"", b"")
    )
    return _Wanted(host, port, rest, lent=token is not None)


def _authorization(path: bytes, token: str) -> bytes:
    """Return the header with a lent token, in the form that git's servers or other ones expect."""
    if _GIT.search(path):
        return b"Authorization: Basic " + base64.b64encode(f"x-access-token:{token}".encode())
    return f"Authorization: Bearer {token}".encode()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection until it ends."""
    with suppress(ConnectionError):
        while block := await reader.read(_BLOCK):
            writer.write(block)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
