"""An MCP server of the older protocol over HTTP that forgets its sessions and goes away on request."""

import json
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fakes.mcp_stdio import result_of


class HttpServer:
    """`with HttpServer(tools={"echo": ""}) as server: server.url`; stopped, it keeps its port."""

    def __init__(self, **offer: Any) -> None:
        self.offer = offer
        self.sessions: list[str] = []
        self.calls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.stream = False
        self.forerunner = False
        """Speak the older HTTP: answers come as events of one long GET, whose first names where to POST."""
        self._events: queue.Queue[str | None] = queue.Queue()
        self.forgotten = 404
        self.on_call: Callable[[BaseHTTPRequestHandler], bool] = lambda _: False
        """Called first for each call of a tool; True if it has answered in a way of its own."""
        self._made = 0
        self._open: set[socket.socket] = set()
        self._kept = self._bound()
        self.url = f"http://127.0.0.1:{self._kept.getsockname()[1]}/mcp"
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> "HttpServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._kept.close()

    def _bound(self, port: int = 0) -> socket.socket:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(("127.0.0.1", port))
        return bound

    def start(self) -> None:
        outer = self

        class Talk(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                outer._open.add(self.connection)

            def finish(self) -> None:
                outer._open.discard(self.connection)
                super().finish()

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                if outer.forerunner:
                    outer.tell_events(self)
                else:
                    self.send_error(405)

            def do_DELETE(self) -> None:
                self.send_error(405)

            def do_POST(self) -> None:
                outer.answer(self)

        self._server = ThreadingHTTPServer(self._kept.getsockname(), Talk, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.socket.close()
        self._server.socket = self._bound(self._kept.getsockname()[1])
        self._server.socket.listen()
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Gone, with all connections and sessions: whoever connects now is refused."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        self.sessions.clear()
        self._events.put(None)
        for one in [*self._open]:
            with suppress(OSError):  # it is gone already
                one.shutdown(socket.SHUT_RDWR)

    def tell_events(self, talk: BaseHTTPRequestHandler) -> None:
        self._events = queue.Queue()
        self._made += 1
        self.sessions.append(f"/messages?session_id={self._made}")
        talk.close_connection = True
        talk.send_response(200)
        talk.send_header("content-type", "text/event-stream")
        talk.end_headers()
        told = f"event: endpoint\ndata: {self.sessions[-1]}"
        with suppress(OSError):
            while told is not None:
                talk.wfile.write(f"{told}\n\n".encode())
                talk.wfile.flush()
                told = self._events.get()

    def answer(self, talk: BaseHTTPRequestHandler) -> None:
        asked = json.loads(talk.rfile.read(int(talk.headers["content-length"])))
        method, params = asked["method"], asked.get("params", {})
        self.headers.append({name.lower(): value for name, value in talk.headers.items()})
        if self.forerunner and talk.path not in self.sessions:  # one that was opened before a restart is gone
            send(talk, 405, "no", "text/plain")
            return
        if (
            not self.forerunner
            and method != "initialize"
            and talk.headers.get("mcp-session-id") not in self.sessions
        ):
            if talk.headers.get("mcp-session-id") is None:
                send(
                    talk,
                    400,
                    {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no session"}},
                )
            else:
                send(talk, self.forgotten, "no such session", "text/plain")
            return
        if "id" not in asked:
            send(talk, 202, "")
            return
        if method == "tools/call":
            self.calls.append(params["name"])
            if self.on_call(talk):
                return
        more = {}
        if method == "initialize":
            self._made += 1
            self.sessions.append(f"session-{self._made}")
            more = {"mcp-session-id": self.sessions[-1]}
        result = result_of(method, params, self.offer)
        told = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}}
        body = {"jsonrpc": "2.0", "id": asked["id"], **told}
        if self.forerunner:
            self._events.put(f"event: message\ndata: {json.dumps(body)}")
            send(talk, 202, "Accepted", "text/plain")
        elif self.stream:
            send(talk, 200, f"event: message\ndata: {json.dumps(body)}\n\n", "text/event-stream", more)
        else:
            send(talk, 200, body, more=more)


def send(
    talk: BaseHTTPRequestHandler, status: int, body: Any, kind: str = "application/json", more: Any = ()
) -> None:
    """An answer with a body."""
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    talk.send_response(status)
    for name, value in {"content-type": kind, "content-length": str(len(data)), **dict(more)}.items():
        talk.send_header(name, value)
    talk.end_headers()
    talk.wfile.write(data)
