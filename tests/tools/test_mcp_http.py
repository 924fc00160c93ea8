"""L4: MCP over streamable HTTP with a server of the older protocol that forgets, goes away and misbehaves."""

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from duckflow.config.mcp import McpServer
from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import replace
from duckflow.tools.mcp.connection import ServerConnection, ServerOpener
from fakes.mcp_http import HttpServer, send
from fakes.rows import Failures

Misbehaves = Callable[[BaseHTTPRequestHandler], bool]


class Clock:
    """Stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def connection_to(server: HttpServer, clock: Callable[[], float], **more) -> ServerConnection:
    one = McpServer(url=server.url, start_timeout_s=120, **more)
    opener = ServerOpener(Path("/"), ShellSettings(), closed=(), env={"TOKEN": "t0ken"})
    return ServerConnection("web", one, opener, clock=clock)


async def test_l4_a_session_that_expired_and_a_server_that_was_restarted_are_connected_again():
    """What certainly was not begun is asked again; one that can't be reached is a sentence, then is back."""
    clock = Clock()
    with HttpServer(tools={"echo": "Says it again."}) as server:
        web = connection_to(server, clock, headers={"Authorization": "Bearer ${TOKEN}"})
        try:
            assert "echo" in (await web.ask(lambda server: server.call("echo", {}))).text
            assert (web.offer.version, server.sessions) == ("2025-06-18", ["session-1"])
            assert {one["authorization"] for one in server.headers} == {"Bearer t0ken"}
            for _ in range(3):  # however often, it is no fault that would have to be waited for
                server.sessions.clear()
                await web.ask(lambda server: server.call("echo", {}))
            assert (server.sessions, len(server.calls)) == (["session-4"], 4)
            server.stop()
            server.start()
            await web.ask(lambda server: server.call("echo", {}))
            server.stop()
            with pytest.raises(ToolError, match=r"can't be used: it can't be reached at 127\.0\.0\.1"):
                await web.ask(lambda server: server.call("echo", {}))
            server.start()
            with pytest.raises(ToolError, match="can be tried again in 1 s"):
                await web.ask(lambda server: server.call("echo", {}))
            clock.now += 1
            server.stream = True
            assert "echo" in (await web.ask(lambda server: server.call("echo", {}))).text
            assert (web.status, len(server.calls)) == ("ready", 6)
        finally:
            await web.aclose()


async def test_l4_a_server_that_speaks_the_forerunner_of_streamable_http_is_used_too():
    clock = Clock()
    with HttpServer(tools={"echo": "Says it again."}) as server:
        server.forerunner = True
        web = connection_to(server, clock, headers={"X-Key": "k"})
        try:
            assert "echo" in (await web.ask(lambda server: server.call("echo", {}))).text
            assert [tool.name for tool in web.offer.tools] == ["echo"]
            assert server.headers[-1]["x-key"] == "k"
            server.stop()
            server.start()
            with pytest.raises(ToolError, match="It is connected again"):
                await web.ask(lambda server: server.call("echo", {}))
            assert "echo" in (await web.ask(lambda server: server.call("echo", {}))).text
            assert server.calls == ["echo", "echo"]
        finally:
            await web.aclose()


def drop(talk: BaseHTTPRequestHandler) -> bool:
    talk.close_connection = True
    return True


def endless(kind: str, block: bytes) -> Misbehaves:
    def answer(talk: BaseHTTPRequestHandler) -> bool:
        talk.send_response(200)
        talk.send_header("content-type", kind)
        talk.end_headers()
        talk.close_connection = True
        with suppress(OSError):
            while True:
                talk.wfile.write(block * 100_000)
        return True

    return answer


def answers(status: int, body: object, kind: str = "application/json") -> Misbehaves:
    return lambda talk: send(talk, status, body, kind) or True


def error(code: int, message: str) -> dict:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


async def test_l4_whatever_a_server_answers_is_a_sentence_and_no_call_is_made_twice():
    clock, failures = Clock(), Failures()
    rows = [
        ("closed the connection", True, drop),
        ("", True, endless("application/json", b"x")),
        ("4000000 byte", True, endless("text/event-stream", b"x")),
        ("HTTP 500", True, answers(500, "<h1>sorry</h1>", "text/html")),
        ("HTTP 401 Unauthorized", True, answers(401, {"error": "who are you"})),
        ("no such city", False, answers(400, error(-32602, "no such city"))),
        ("Unexpected content type", True, answers(200, "hello", "text/html")),
        ("parse", False, answers(200, "{", "application/json")),
    ]
    with HttpServer(tools={"echo": ""}) as server:
        web = connection_to(server, clock)
        try:
            for reason, lost, misbehaves in rows:
                with failures.of(reason):
                    clock.now += 100
                    server.on_call = misbehaves
                    before = len(server.calls)
                    with pytest.raises(ToolError) as told:
                        await web.ask(lambda server: server.call("echo", {}))
                    assert reason in str(told.value)
                    assert ("connected again" in str(told.value), web.status == "down") == (lost, lost)
                    assert len(server.calls) == before + 1
                    server.on_call = lambda _: False
                    assert "echo" in (await web.ask(lambda server: server.call("echo", {}))).text
        finally:
            await web.aclose()
    failures.report()


async def test_l4_a_slow_answer_is_given_up_and_the_next_one_comes():
    leave = threading.Event()
    with HttpServer(tools={"echo": ""}) as server:
        web = connection_to(server, Clock(), timeout_s=0.3)
        try:
            await web.connect()
            server.on_call = lambda _: leave.wait()
            with pytest.raises(ToolError, match="did not answer within"):
                await web.ask(lambda server: server.call("echo", {}))
            leave.set()
            server.on_call = lambda _: False
            web.server = replace(web.server, timeout_s=60)
            assert "echo" in (await web.ask(lambda server: server.call("echo", {}))).text
        finally:
            leave.set()
            await web.aclose()
