"""A model provider on loopback: real HTTP, three wires, scripted answers and faults, requests recorded."""

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

OPENAI_STOPS = {"end": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}
ANTHROPIC_STOPS = {"end": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}


@dataclass(frozen=True)
class Answer:
    """Answer of the model, and the form in which it arrives."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Tool calls: name and arguments as JSON text."""
    stop: str = "end"
    tokens: tuple[int, int, int] = (10, 0, 5)
    """Input, the part of it that was cached, and output."""
    chunk_bytes: int = 0
    """Bytes in each chunk of the stream; 0 sends each event whole."""
    streamed: bool = True
    fault: Literal["", "no_end", "drop", "stall"] = ""
    """After the text: end without an end, break the connection, or say nothing more."""
    error: str = ""
    """JSON of an error object put into the stream after the text."""
    ids: tuple[str, ...] = ()
    """Ids of the calls. Without them, calls are numbered in each answer, as some servers do."""
    thinking: str = "hmm"
    """Readable thinking. Anthropic's wire always shows it, the others with a proof."""
    proof: str = ""
    """Signature or encrypted content that comes with the thinking."""
    written: int = 0
    """Tokens of the input that were written to the cache."""

    def call_id(self, index: int) -> str:
        """Return the id of a call."""
        return self.ids[index] if self.ids else f"call_{index}"


@dataclass(frozen=True)
class Fault:
    """An answer with an unknown status."""

    status: int
    message: str = "broken on purpose"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Bytes to send as they are."""

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200


Reply = Answer | Fault | Raw


@dataclass(frozen=True)
class Asked:
    """One request as it came in; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """`with ModelServer([Answer("hello")]) as server:`, then ask at `server.url`."""

    def __init__(
        self, replies: Sequence[Reply] | Callable[[dict[str, Any]], Reply] = (), wait_s: float = 0
    ) -> None:
        self._wait_s = wait_s
        """Time that it takes for each answer, for several at the same time."""
        self._choose = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self._lock = threading.Lock()
        self.requests: list[Asked] = []
        self.questions: list[str] = []
        """Paths that were asked for with GET."""
        self.pages: dict[str, Any] = {}
        """What GET answers, by path; bytes as they are, a number is a status."""
        self.disconnected = threading.Event()
        """Set when a client went away while an answer stalled."""
        self.slow_pages = False
        """Whether GET stalls."""
        self.closing = threading.Event()
        self.connections: list[socket.socket] = []
        self.keeps_open = False
        """Whether a connection serves several requests."""

    def __enter__(self) -> Self:
        self._http = _Http(("127.0.0.1", 0), _Connection)
        self._http.model = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        for connection in self.connections:  # do not wait for clients that left one open
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        self._http.server_close()

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def take(self, asked: Asked) -> Reply:
        """Return the next reply; after the last one, a fault that no client expects."""
        time.sleep(self._wait_s)
        with self._lock:
            self.requests.append(asked)
            if self._choose is not None:
                return self._choose(asked.body)
            return self._replies.pop(0) if self._replies else Fault(418, "the script is over")


def free_port() -> int:
    """Return a port on which no program listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class _Connection(BaseHTTPRequestHandler):
    server: "_Http"
    protocol_version = "HTTP/1.1"
    timeout = 120

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def setup(self) -> None:
        super().setup()
        self.server.model.connections.append(self.connection)

    def _last_request(self) -> None:
        if not self.server.model.keeps_open:
            self.send_header("connection", "close")

    def do_GET(self) -> None:
        self.server.model.questions.append(self.path)
        if self.server.model.slow_pages:
            self._wait_for_end()
            return
        page = self.server.model.pages.get(self.path, 404)
        if isinstance(page, int):
            self._whole(page, b"{}", "application/json")
        elif isinstance(page, bytes):
            self._whole(200, page, "application/json")
        else:
            self._whole(200, json.dumps(page).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.model.take(Asked(self.path, headers, body))
        try:
            self._play(reply)
        except (BrokenPipeError, ConnectionResetError):
            self.server.model.disconnected.set()

    def _play(self, reply: Reply) -> None:
        if isinstance(reply, Fault):
            said = json.dumps({"error": {"message": reply.message, "type": "fault"}}).encode()
            self._whole(reply.status, said, "application/json", reply.headers)
        elif isinstance(reply, Raw):
            self._whole(reply.status, reply.body, reply.content_type)
        elif not reply.streamed:
            self._whole(200, json.dumps(_openai_whole(reply)).encode(), "application/json")
        else:
            self._stream(reply)

    def _whole(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "content-type": kind,
            "content-length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self._last_request()
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, reply: Answer) -> None:
        self.send_response(200)
        for name, value in (
            ("content-type", "text/event-stream; charset=utf-8"),
            ("transfer-encoding", "chunked"),
        ):
            self.send_header(name, value)
        self._last_request()
        self.end_headers()
        wires = {"messages": _anthropic, "responses": _responses}
        events = wires.get(self.path.rpartition("/")[2], _openai)(reply)
        for chunk in _cut(events, reply.chunk_bytes):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        if reply.fault == "stall":
            self._wait_for_end()
        elif reply.fault == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _wait_for_end(self) -> None:
        while not self.server.model.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                self.server.model.disconnected.set()
                return


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    model: ModelServer


def _cut(events: Iterator[bytes], size: int) -> Iterator[bytes]:
    if not size:
        yield from events
        return
    whole = b"".join(events)
    for start in range(0, len(whole), size):
        yield whole[start : start + size]


def _pieces(text: str) -> Iterator[str]:
    """Yield small pieces, as a model streams; later ones are larger, to keep long answers fast."""
    at, small = 0, 12
    while at < len(text):
        size = 7 if small else 97
        yield text[at : at + size]
        at, small = at + size, max(small - 1, 0)


def _data(value: object) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _openai(reply: Answer) -> Iterator[bytes]:
    yield b": a comment keeps the line open\n\n"
    yield _data(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    )
    for piece in _pieces(reply.thinking if reply.proof else ""):
        yield _data({"choices": [{"delta": {"reasoning_content": piece}}]})
    for piece in _pieces(reply.text):
        yield _data({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
    for index, (name, arguments) in enumerate(reply.calls):
        first = {
            "index": index,
            "id": reply.call_id(index),
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        yield _data({"choices": [{"delta": {"tool_calls": [first]}}]})
        for piece in _pieces(arguments):
            more = {"index": index, "function": {"arguments": piece}}
            yield _data({"choices": [{"delta": {"tool_calls": [more]}}]})
    if reply.error:
        yield _data({"error": json.loads(reply.error)})
    if reply.fault:
        return
    stop = "tool_calls" if reply.calls else reply.stop
    yield _data({"choices": [{"delta": {}, "finish_reason": OPENAI_STOPS[stop]}]})
    yield _data({"choices": [], "usage": _openai_usage(reply)})
    yield b"data: [DONE]\n\n"


def _openai_usage(reply: Answer) -> dict[str, Any]:
    given, cached, said = reply.tokens
    return {
        "prompt_tokens": given,
        "completion_tokens": said,
        "total_tokens": given + said,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": reply.written},
    }


def _openai_whole(reply: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": OPENAI_STOPS[reply.stop]}
    return {"object": "chat.completion", "choices": [choice], "usage": _openai_usage(reply)}


def _anthropic(reply: Answer) -> Iterator[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return b"event: " + kind.encode() + b"\n" + _data({"type": kind, **fields})

    given, cached, said = reply.tokens
    usage = {
        "input_tokens": given - cached - reply.written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": reply.written,
    }
    yield event(
        "message_start", message={"role": "assistant", "content": [], "usage": {**usage, "output_tokens": 1}}
    )
    yield event("ping")
    yield event(
        "content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}
    )
    yield event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": reply.thinking})
    yield event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": reply.proof})
    yield event("content_block_stop", index=0)
    yield event("content_block_start", index=1, content_block={"type": "text", "text": ""})
    for piece in _pieces(reply.text):
        yield event("content_block_delta", index=1, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=1)
    for index, (name, arguments) in enumerate(reply.calls, start=2):
        block = {"type": "tool_use", "id": reply.call_id(index - 2), "name": name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _pieces(arguments):
            yield event(
                "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece}
            )
        yield event("content_block_stop", index=index)
    if reply.error:
        yield event("error", error=json.loads(reply.error))
    if reply.fault:
        return
    stop = "tool_calls" if reply.calls else reply.stop
    yield event("message_delta", delta={"stop_reason": ANTHROPIC_STOPS[stop]}, usage={"output_tokens": said})
    yield event("message_stop")


def _responses(reply: Answer) -> Iterator[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return b"event: " + kind.encode() + b"\n" + _data({"type": kind, **fields})

    yield event("response.created", response={"object": "response", "status": "in_progress", "output": []})
    output = responses_items(reply)
    for index, item in enumerate(output):
        place = {"output_index": index, "item_id": item["id"]}
        yield event(
            "response.output_item.added",
            item={"type": item["type"], "id": item["id"], "status": "in_progress"},
            **place,
        )
        kind, text = {
            "reasoning": ("response.reasoning_summary_text", reply.thinking),
            "message": ("response.output_text", reply.text),
            "function_call": ("response.function_call_arguments", item.get("arguments", "")),
        }[item["type"]]
        for piece in _pieces(text):
            yield event(f"{kind}.delta", delta=piece, **place)
        done = {"arguments": text} if item["type"] == "function_call" else {"text": text}
        yield event(f"{kind}.done", **done, **place)
        if not (reply.fault and item["type"] == "message"):
            yield event("response.output_item.done", item=item, **place)
    if reply.error:
        yield event("error", **json.loads(reply.error))
    if reply.fault:
        return
    given, cached, said = reply.tokens
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": reply.written},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 1 if reply.proof else 0},
    }
    reason = {"length": "max_output_tokens", "refusal": "content_filter"}.get(reply.stop)
    status = "incomplete" if reason else "completed"
    details = {"reason": reason} if reason else None
    whole = {"object": "response", "status": status, "output": output, "usage": usage, "error": None}
    yield event(f"response.{status}", response={**whole, "incomplete_details": details})


def responses_items(reply: Answer) -> list[dict[str, Any]]:
    """Return an answer as items of OpenAI's Responses; reasoning only with a proof."""
    items: list[dict[str, Any]] = []
    if reply.proof:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{reply.proof}",
                "summary": summary,
                "encrypted_content": reply.proof,
            }
        )
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append(
            {
                "type": "message",
                "id": f"msg_{reply.proof}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for index, (name, arguments) in enumerate(reply.calls):
        call_id = reply.call_id(index)
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{call_id}",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
        )
    return items
