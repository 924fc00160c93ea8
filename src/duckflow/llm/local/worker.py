"""The process that holds an embedded model: asked over a socket, a line of JSON each way.

It is a process of its own because the runtime keeps Python's lock for the seconds it takes to load, because a
model's memory is given back by ending it, and because what goes wrong in it must not end the conversation.
It is started as a file, imports nothing of Duckflow, and ends when the other end of the socket is closed.

    in:   {"model": ..., ...}                      once: what to load and how
          {"ask": 1, "body": {...}}                a chat completion
          {"stop": 1}                              give that one up, and any before it
          {"count": 2, "text": ...}                how many tokens?
          {"state": 3, "action": "save", "file": ...}   keep what was read, or "restore" it
    out:  {"ready": true} or {"failed": ...}       once
          {"id": 1, "chunk": {...}} ... {"id": 1, "end": true}
          {"id": 2, "tokens": 17}
          {"id": 3, "done": true}
"""

import http
import http.client
import importlib
import json
import os
import queue
import secrets
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ERRORS_ONLY = 1
_NO_SPACE = {"x-guidance": {"whitespace_flexible": False}}


class WorkerChannel:
    """The socket to Duckflow, one JSON object a line; whole lines even when two threads write."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._lines = self._socket.makefile("rb")
        self._writing = threading.Lock()

    def read(self) -> dict[str, Any]:
        """The next message. The end of the line is the end of this process, whatever it is doing."""
        try:
            line = self._lines.readline()
        except OSError:  # Duckflow was killed before it read all that was written
            os._exit(0)
        if not line.endswith(b"\n"):
            os._exit(0)
        return json.loads(line)

    def write(self, message: dict[str, Any]) -> None:
        """Send a message."""
        data = json.dumps(message).encode() + b"\n"
        try:
            with self._writing:
                self._socket.sendall(data)
        except OSError:
            os._exit(0)


class Worker:
    """One loaded model. Questions are answered one after the other; a stop is heard at once."""

    def __init__(self, line: WorkerChannel, settings: dict[str, Any]) -> None:
        self._line = line
        self._key = secrets.token_urlsafe(32)
        self._stopped = 0
        self._asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._runtime: Any = importlib.import_module("xllamacpp")
        self._server = self._runtime.Server(_parameters(self._runtime, settings, self._key))

    def run(self) -> None:
        """Answer for as long as there is someone who asks."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            asked = self._asked.get()
            if "ask" in asked:
                self._answer(asked["ask"], asked["body"])
            elif "state" in asked:
                done = self._post(f"/slots/0?action={asked['action']}", {"filename": asked["file"]})
                self._line.write({"id": asked["state"], "done": done is not None})
            else:
                self._line.write({"id": asked["count"], "tokens": self._count(asked["text"])})

    def _listen(self) -> None:
        while True:
            message = self._line.read()
            if "stop" in message:
                self._stopped = message["stop"]
            else:
                self._asked.put(message)

    def _answer(self, number: int, body: dict[str, Any]) -> None:
        def pass_on(chunk: dict[str, Any]) -> bool:
            # True ends the generation. Chunks come while the prompt is read, too, one for each batch.
            if self._stopped >= number:
                return True
            self._line.write({"id": number, "chunk": chunk})
            return False

        if self._stopped < number:
            try:
                self._server.handle_chat_completions(self._bound(body), pass_on)
            except Exception as exc:  # noqa: BLE001 - the other side turns whatever it was into a sentence
                self._line.write({"id": number, "chunk": {"error": {"message": str(exc)}}})
        self._line.write({"id": number, "end": True})

    def _bound(self, body: dict[str, Any]) -> dict[str, Any]:
        """The schema as a grammar without white space: a model that may indent its JSON says half as much."""
        schema = body.pop("duckflow_schema", None)
        if schema is not None:
            body["grammar"] = str(self._runtime.json_schema_to_grammar({**schema, **_NO_SPACE}))
        return body

    def _count(self, text: str) -> int | None:
        """Tokens of a text."""
        answer = self._post("/tokenize", {"content": text})
        return len(answer["tokens"]) if answer and "tokens" in answer else None

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """What only the runtime's HTTP side can do; None if it does not. http.client knows no proxies."""
        address = urlsplit(str(self._server.listening_address))
        connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        else:
            return answer if response.status == http.HTTPStatus.OK else None
        finally:
            connection.close()


def _parameters(runtime: Any, settings: dict[str, Any], key: str) -> Any:  # noqa: ANN401 - it has no types
    parameters = runtime.CommonParams()
    parameters.model.path = settings["model"]
    parameters.n_ctx = settings["window"]
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = settings["threads"]
    parameters.cpuparams_batch.n_threads = settings["batch_threads"]
    # A stop is heard between two batches of the prompt. Larger ones were not faster on processors.
    parameters.n_batch = parameters.n_ubatch = settings["batch"]
    # Prompts that take turns (deciding, judging) are swapped instead of read again.
    parameters.cache_ram_mib = settings["cache_mib"]
    parameters.warmup = False  # the first prompt comes at once, and warms it as well
    parameters.fit_params = False  # it would read the file once more to see what a graphics card can hold
    parameters.slot_save_path = settings["states"]
    if settings["alike"]:
        parameters.speculative.types = [runtime.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        parameters.speculative.ngram_simple.size_n = settings["alike"]
    parameters.verbosity = ERRORS_ONLY
    # The HTTP side can't be switched off: this machine only, any free port, a key nobody else has.
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.ui = False
    parameters.endpoint_slots = False
    return parameters


def main() -> None:
    """Load what the first message names, say how that went, answer."""
    with suppress(OSError):
        # Where memory runs out, this process goes, and the conversation stays.
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    line = WorkerChannel(int(sys.argv[1]))
    settings = line.read()
    try:
        worker = Worker(line, settings)
    except Exception as exc:  # noqa: BLE001 - as above
        line.write({"failed": str(exc)})
        return
    line.write({"ready": True})
    worker.run()


if __name__ == "__main__":
    main()
