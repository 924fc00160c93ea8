"""`duckflow web` as a process, and a client that has signed in."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from fakes import warm

PATIENCE_S = 120.0
"""Longest wait, in seconds: without it, a failing test would hang."""


class WebClient:
    """Client that acts like the page; `base` is the page's address, `address` the printed link."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.base = address.partition("?")[0]
        self.origin = "/".join(self.base.split("/")[:3])
        self.http = httpx2.Client(timeout=PATIENCE_S, trust_env=False)

    def enter(self) -> httpx2.Response:
        """Exchange the token for the cookie."""
        return self.http.get(self.address)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Send a GET request."""
        return self.http.get(self.base + path, headers=headers)

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """Send a POST request, from the page unless `origin` names another place."""
        return self.http.post(self.base + path, json=body, headers={"origin": self.origin, **headers})

    def send(self, session: str, **command: Any) -> httpx2.Response:
        """Send a command to a session."""
        return self.post(f"api/sessions/{session}/commands", command)

    def follow(self, session: str, met: Callable[[str, Any], bool], after: int = 0) -> list[tuple[str, Any]]:
        """Read the stream until a message meets the condition; return all messages up to that one."""
        got: list[tuple[str, Any]] = []
        with self.http.stream("GET", f"{self.base}api/stream?session={session}&after={after}") as stream:
            event = ""
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    got.append((event, json.loads(line.removeprefix("data: "))))
                    if met(*got[-1]):
                        return got
        raise AssertionError(f"the stream ended: {got}")

    def question(self, session: str) -> Any:
        """Wait for a question and return it."""
        return self.follow(session, lambda event, found: event == "question" and found is not None)[-1][1]

    def reply(self, session: str, text: str) -> list[tuple[str, Any]]:
        """Wait until this text has appeared and the work has ended."""
        self.follow(session, lambda event, found: event == "entry" and text in found["text"])
        return self.follow(session, lambda event, found: event == "now" and not found["working"])


@contextmanager
def web_server(folder: Path, script: Path, *flags: str, language: str = "en") -> Iterator[WebClient]:
    """Serve until the block ends."""
    command = [sys.executable, "-m", "duckflow", "web", "--no-browser", "--workspace", str(folder)]
    env = {**os.environ, "DUCKFLOW_LANGUAGE": language}
    with warm.start(
        [*command, "--model", f"scripted:{script}", *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    ) as server:
        try:
            assert server.stdout is not None
            client = WebClient(server.stdout.readline().split()[-1])
            yield client
            client.http.close()
            server.send_signal(signal.SIGINT)
            assert server.wait(PATIENCE_S) in (0, 130, -signal.SIGINT)
        finally:
            server.kill()
