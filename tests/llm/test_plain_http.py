"""A server on this machine is asked without the HTTP library: what it may answer, and how."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.llm.endpoints import PROVIDERS, Endpoint
from duckflow.llm.wire.http import HttpConnection, open_http, read_body
from duckflow.llm.wire.plain_http import PlainClient, speaks_plainly
from fakes.rows import every_row

OK = b"HTTP/1.1 200 OK\r\n"


class RawServer:
    """Answers each request with the next of some bytes; closes after those that end with `close`."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")), b":0"
                )
                self.requests.append(head + await reader.readexactly(int(length.partition(b":")[2])))
                answer = self.answers.pop(0)
                writer.write(answer.removesuffix(b"close"))
                await writer.drain()
                if answer.endswith(b"close"):
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: bytes) -> AsyncIterator[tuple[RawServer, Endpoint]]:
    server = RawServer(*answers)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield server, at(f"http://127.0.0.1:{port}/v1")
    finally:
        listening.close()


def at(address: str) -> Endpoint:
    return Endpoint(provider=PROVIDERS["openai"], model="m", address=address, key="k")


async def asked(endpoint: Endpoint, times: int = 1) -> list[bytes]:
    client = open_http(endpoint, {"X-Own": "1"})
    assert isinstance(client, PlainClient)
    bodies: list[bytes] = []
    try:
        for _ in range(times):
            async with client.stream("POST", f"{endpoint.address}/x", b"{}") as answer:
                bodies.append(await read_body(answer, 10_000))
    finally:
        await client.aclose()
    return bodies


@every_row(
    "answer, body",
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n", b"hello"),
        (OK + b"\r\nhelloclose", b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhelloclose", b"hello"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", b"hi"),
    ],
)
async def test_bodies_of_every_form_are_read(answer: bytes, body: bytes):
    async with serving(answer) as (server, endpoint):
        assert await asked(endpoint) == [body]
        assert server.requests[0].startswith(b"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1:")
        assert server.requests[0].endswith(b"X-Own: 1\r\nContent-Length: 2\r\n\r\n{}")


@every_row(
    "answer",
    [
        b"close",
        b"SSH-2.0-OpenSSH\r\nclose",
        b"HTTP/1.1 xyz\r\n\r\nclose",
        OK + b"no colon\r\n\r\nclose",
        OK + b"Content-Length: -1\r\n\r\nclose",
        OK + b"Content-Length: 9\r\n\r\nhelloclose",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nhe\r\nclose",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\nclose",
        OK + b"X: " + b"y" * 100_000 + b"\r\n\r\nclose",
    ],
)
async def test_what_is_no_answer_is_a_cut_off(answer: bytes):
    async with serving(answer) as (_, endpoint):
        with pytest.raises(Unavailable) as caught:
            await asked(endpoint)
    assert caught.value.key == "llm.cut_off"


async def test_a_connection_is_used_again_only_if_its_answer_was_read_to_the_end():
    whole = OK + b"Content-Length: 2\r\n\r\nhi"
    async with serving(whole, whole, whole) as (server, endpoint):
        assert await asked(endpoint, 3) == [b"hi"] * 3
        assert server.connections == 1
    async with serving(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", whole) as (server, endpoint):
        assert await asked(endpoint, 2) == [b"hi"] * 2
        assert server.connections == 2
    async with serving(OK + b"Content-Length: 20000\r\n\r\n" + b"x" * 20_000, whole) as (server, endpoint):
        assert [len(body) for body in await asked(endpoint, 2)] == [10_000, 2]
        assert server.connections == 2


async def test_events_are_the_same_however_they_are_cut():
    said = b": hello\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: lines\n\nevent: ping\n\n"
    said += b"data: \xe3\x81\x82\r\rdata: no end\n"
    for step in (1, 2, 3, 7, len(said)):
        chunks = [said[start : start + step] for start in range(0, len(said), step)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        head = OK + b"Content-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with serving(head + body) as (_, endpoint):
            connection = HttpConnection(endpoint, {})
            assert [data async for data in connection.post("/x", {}, 60)] == ["one", "two\nlines", "あ"], step
            await connection.aclose()


async def test_a_compressed_answer_nobody_asked_for_is_refused():
    async with serving(OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi") as (_, endpoint):
        with pytest.raises(ProviderError) as caught:
            await asked(endpoint)
    assert caught.value.key == "llm.not_understood"


def test_only_plain_addresses_of_this_machine_are_asked_this_way():
    """SAFETY 20, and K6: certificates, proxies and passwords are the library's."""
    here = ("http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:11434/v1", "http://127.9.9.9")
    others = (
        "https://127.0.0.1/v1",
        "http://model.example/v1",
        "http://me:hush@127.0.0.1",
        "https://api.openai.com/v1",
    )
    others += (
        "http://127.0.0.1/a b",
        "http://127.0.0.1/?q",
        "http://127.0.0.1.example/",
        "http://127.0.0.1\r\nX: y/",
    )
    assert [address for address in here if not speaks_plainly(at(address))] == []
    assert [address for address in others if speaks_plainly(at(address))] == []
