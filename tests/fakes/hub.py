"""A model hub on the loopback: serves one file, with ranges, and misbehaves on request."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class FakeHub(ThreadingHTTPServer):
    """`content` at any path. `cuts` says, request by request, after how many bytes the connection breaks."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.content = content
        self.cuts: list[int] = []
        self.ranges = True
        self.status: int | None = None
        self.redirects = 0
        self.seen: list[tuple[str, str | None]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    server: FakeHub

    def do_GET(self) -> None:
        hub = self.server
        wanted = self.headers.get("Range")
        hub.seen.append((self.path, wanted))
        if hub.redirects:
            hub.redirects -= 1
            self.send_response(302)
            self.send_header("Location", f"{hub.address}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and hub.ranges else 0
        body = hub.content[start:]
        self.send_response(hub.status or (206 if start else 200))
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.end_headers()
        self.wfile.write(body[: hub.cuts.pop(0)] if hub.cuts else body)
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def running_hub(content: bytes) -> Iterator[FakeHub]:
    """A hub that is up inside the block."""
    with FakeHub(content) as hub:
        thread = Thread(target=hub.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
