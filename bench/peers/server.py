"""Model on loopback that speaks the three protocols and requests one small shell command per loop."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from peers.commands import AIDER, command

BESIDE = {
    "RequirementList": {"requirements": [{"requirement": "the commands ran", "priority": 1}]},
    "SatisfactionEvaluation": {
        "requirement_scores": [{"requirement": "1", "score": 1.0, "evidence": ["e1"]}],
        "completion_recommendation": True,
    },
    "SessionTitle": {"title": "Commands"},
}
"""Immediate answers to Duckflow's side questions."""

FINISHED = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""Command that tells mini-swe-agent that the work is done."""


@dataclass
class PeerServer:
    """Server for a `with` block that records when each loop's request came, and its prompt."""

    loops: int
    arrivals: list[float] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Wire)
        self._http.peer = self  # type: ignore[attr-defined]
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def asked(self, prompt: str) -> int:
        """Record a loop's request and return its number, starting at 1."""
        self.arrivals.append(time.perf_counter())
        self.prompts.append(prompt)
        return len(self.arrivals)

    def cost(self) -> float:
        """Return the cost: new characters, plus a tenth of those that repeat the previous request."""
        spent, before = 0.0, ""
        for prompt in self.prompts:
            same = _common(before, prompt)
            spent += len(prompt) - same + 0.1 * same
            before = prompt
        return spent


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


class _Wire(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # like every provider; otherwise the client's system delays each answer by 40 ms
    )

    def log_message(self, *_: object) -> None:
        """Suppress the log."""

    def do_GET(self) -> None:
        """Report that the model has no metadata."""
        self._send(404, "application/json", b"{}")

    def do_POST(self) -> None:
        """Answer at once, in the protocol and form that the agent knows."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/responses"):
            self._codex(body)
        elif body.get("tools"):
            self._mini(body)
        elif body["model"] == AIDER:
            self._asked("".join(str(message["content"]) for message in body["messages"]))
            self._say("Run the next command.", body)
        else:
            self._duckflow(body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _asked(self, prompt: str) -> int:
        return self.server.peer.asked(prompt)  # type: ignore[attr-defined]

    def _over(self, loop: int) -> bool:
        return loop > self.server.peer.loops  # type: ignore[attr-defined]

    def _duckflow(self, body: dict[str, Any]) -> None:
        prompt = "".join(str(message["content"]) for message in body["messages"])
        wanted = prompt.rpartition("Output: ")[2]
        answer: Any = next((one for name, one in BESIDE.items() if wanted.startswith(name)), None)
        if answer is None:
            loop = self._asked(prompt)
            run = {"operation": "shell.run", "args": {"command": command(loop)}}
            answer = {"next_step": "continue", "reply": "", "actions": [run]}
            if self._over(loop):
                answer = {"next_step": "done", "reply": "All commands ran."}
        self._say(json.dumps(answer), body)

    def _say(self, text: str, body: dict[str, Any]) -> None:
        if not body.get("stream"):
            whole = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
            self._send(200, "application/json", json.dumps(whole).encode())
            return
        chunk = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
        self._send(200, "text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def _mini(self, body: dict[str, Any]) -> None:
        loop = self._asked(json.dumps(body["tools"]) + "".join(map(json.dumps, body["messages"])))
        wanted = FINISHED if self._over(loop) else command(loop)
        call = {
            "id": f"call_{loop}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": wanted})},
        }
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {
            "id": f"answer_{loop}",
            "object": "chat.completion",
            "created": 1,
            "model": "bench",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": usage,
        }
        self._send(200, "application/json", json.dumps(answer).encode())

    def _codex(self, body: dict[str, Any]) -> None:
        fixed = str(body.get("instructions", "")) + json.dumps(body.get("tools", []))
        loop = self._asked(fixed + "".join(map(json.dumps, body["input"])))
        item: dict[str, Any] = _shell_call(body.get("tools", []), loop)
        if self._over(loop):
            text = {"type": "output_text", "text": "All commands ran.", "annotations": []}
            item = {"type": "message", "role": "assistant", "id": f"msg_{loop}", "content": [text]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {"id": f"resp_{loop}", "object": "response", "output": [item], "usage": usage}
        events = [
            {"type": "response.created", "response": {"id": f"resp_{loop}"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        said = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        self._send(200, "text/event-stream", said.encode())


def _shell_call(tools: list[dict[str, Any]], loop: int) -> dict[str, Any]:
    """Return a call of whichever shell tool the agent offers."""
    names = {str(tool.get("name", "")) for tool in tools}
    arguments: dict[str, Any] = {"command": command(loop)}
    name = "shell_command"
    if "exec_command" in names:
        name, arguments = "exec_command", {"cmd": command(loop)}
    elif "shell" in names:
        name, arguments = "shell", {"command": ["bash", "-lc", command(loop)]}
    call = {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}
    return {**call, "call_id": f"call_{loop}", "id": f"fc_{loop}"}
