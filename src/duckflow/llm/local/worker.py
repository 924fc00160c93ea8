"""Process that holds an embedded model. It exchanges lines of JSON with Duckflow over a socket.

It is a separate process because the runtime holds Python's GIL for the seconds it takes to load, because
ending it frees the model's memory, and because a crash in it must not end the conversation. It is started as
a file, imports nothing of Duckflow, and ends when Duckflow closes its end of the socket.

    in:   {"model": ..., ...}                      once: the settings
          {"ask": 1, "body": {...}}                a chat completion
          {"stop": 1}                              abandon request 1 and all earlier ones
          {"count": 2, "text": ...}                count the tokens
          {"state": 3, "action": "save", "file": ...}   save the prompt state, or "restore" it
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
    """Socket to Duckflow, one JSON object per line. A lock keeps lines whole when two threads write."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._lines = self._socket.makefile("rb")
        self._writing = threading.Lock()

    def read(self) -> dict[str, Any]:
        """Return the next message. Exits the process at once if Duckflow closed the socket."""
        try:
            line = self._lines.readline()
        except OSError:  # Duckflow was killed before it read everything we wrote
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
    """One loaded model. Requests are answered one after the other; a stop is read at once."""

    def __init__(self, line: WorkerChannel, settings: dict[str, Any]) -> None:
        self._line = line
        self._key = secrets.token_urlsafe(32)
        self._stopped = 0
        self._asked: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._runtime: Any = importlib.import_module("xllamacpp")
        self._server = self._runtime.Server(_parameters(self._runtime, settings, self._key))

    def run(self) -> None:
        """Answer requests until the process exits."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            asked = self._asked.get()
            if "ask" in asked:
                self._answer(asked["ask"], asked["body"])
            elif "state" in asked:
                done = self._post(f"/slots/0?action={asked['action']}", {"filename": asked["file"]})
                self._line.write({"id": asked["state"], "done": done is not None})
            else:
                answer = self._post("/tokenize", {"content": asked["text"]})
                tokens = len(answer["tokens"]) if answer and "tokens" in answer else None
                self._line.write({"id": asked["count"], "tokens": tokens})

    def _listen(self) -> None:
        while True:
            message = self._line.read()
            if "stop" in message:
                self._stopped = message["stop"]
            else:
                self._asked.put(message)

    def _answer(self, number: int, body: dict[str, Any]) -> None:
        def pass_on(chunk: dict[str, Any]) -> bool:
            # True ends the generation. There is also a chunk for each batch of the prompt.
            if self._stopped >= number:
                return True
            self._line.write({"id": number, "chunk": chunk})
            return False

        if self._stopped < number:
            try:
                if (schema := body.pop("duckflow_schema", None)) is not None:
                    # A grammar without white space, since indentation would double the output.
                    body["grammar"] = str(self._runtime.json_schema_to_grammar({**schema, **_NO_SPACE}))
                self._server.handle_chat_completions(body, pass_on)
            except Exception as exc:  # noqa: BLE001 - Duckflow turns any failure into a sentence
                self._line.write({"id": number, "chunk": {"error": {"message": str(exc)}}})
        self._line.write({"id": number, "end": True})

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Call the runtime's HTTP server, for functions its Python API lacks. Return None on failure.

        http.client ignores proxies, which must not see this request.
        """
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


def _parameters(runtime: Any, settings: dict[str, Any], key: str) -> Any:  # noqa: ANN401 - untyped runtime
    parameters = runtime.CommonParams()
    parameters.model.path = settings["model"]
    parameters.n_ctx = settings["window"]
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = settings["threads"]
    parameters.cpuparams_batch.n_threads = settings["batch_threads"]
    # A stop takes effect between two batches of the prompt. Larger batches were not faster on CPUs.
    parameters.n_batch = parameters.n_ubatch = settings["batch"]
    # Keeps the states of alternating prompts (deciding, judging) in memory instead of evaluating them again.
    parameters.cache_ram_mib = settings["cache_mib"]
    parameters.warmup = False  # the first prompt follows at once and warms it up too
    parameters.fit_params = False  # would read the file a second time to fit it to a GPU
    parameters.slot_save_path = settings["states"]
    if settings["alike"]:
        parameters.speculative.types = [runtime.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        parameters.speculative.ngram_simple.size_n = settings["alike"]
    parameters.verbosity = ERRORS_ONLY
    # The HTTP server can't be switched off, so it listens on loopback, at a free port, with a secret key.
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.ui = False
    parameters.endpoint_slots = False
    return parameters


def main() -> None:
    """Load the model that the first message names, report the outcome, and answer requests."""
    with suppress(OSError):
        # If memory runs out, the system kills this process rather than the conversation.
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
