"""A provider that refuses what the real ones refuse: a wrong order, unknown ids, changed thinking.

It gives every call its own id and proves every thought with a random text, which has to come back unchanged,
with the calls that followed it, and never to another model.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fakes.model_server import Answer, Asked, Fault, ModelServer, Reply, responses_items

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")

ANTHROPIC_FIELDS = {
    *("model", "max_tokens", "messages", "system", "stream"),
    *("temperature", "tools", "thinking", "output_config"),
}
CHAT_FIELDS = {
    *("model", "messages", "stream", "stream_options", "max_tokens", "temperature"),
    *("reasoning_effort", "tools", "response_format", "stop"),
}
RESPONSES_FIELDS = {
    *("model", "input", "stream", "store", "include", "max_output_tokens", "temperature"),
    *("reasoning", "tools", "text", "prompt_cache_key", "prompt_cache_options"),
}
BLOCK_FIELDS = {
    "text": {"type", "text", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
ITEM_FIELDS = {
    "message": {"type", "role", "id", "status", "content", "phase"},
    "function_call": {"type", "id", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "id", "summary", "encrypted_content"},
}


class Refusal(Exception):
    """Fault that the server found in a request."""


@dataclass(frozen=True)
class Given:
    """An answer of this server, and the model it was given as."""

    model: str
    answer: Answer


class StrictServer(ModelServer):
    """`with StrictServer([Answer(…), …]) as server:`. `refusals` lists the faults it found."""

    def __init__(self, replies: Sequence[Reply] | Callable[[dict[str, Any]], Reply] = ()) -> None:
        super().__init__(replies)
        self.refusals: list[str] = []
        self._given: dict[str, Given] = {}

    def take(self, asked: Asked) -> Reply:
        """The next reply, if there is nothing wrong with the request."""
        wire = asked.path.rpartition("/")[2]
        try:
            {"messages": self._anthropic, "responses": self._responses}.get(wire, self._chat)(asked.body)
        except (Refusal, KeyError, TypeError, AttributeError) as exc:
            said = str(exc) if isinstance(exc, Refusal) else f"malformed: {exc!r}"
            with self._lock:
                self.requests.append(asked)
                self.refusals.append(said)
            return Fault(400, said)
        reply = super().take(asked)
        if not isinstance(reply, Answer):
            return reply
        thinks = wire != "messages" or "thinking" in asked.body
        ids = tuple(f"call_{secrets.token_hex(8)}" for _ in reply.calls)
        proof = secrets.token_hex(16) if thinks else ""
        reply = replace(reply, ids=ids, proof=proof, thinking=f"What now? {proof[:4]}")
        with self._lock:
            for name in (*ids, proof):
                self._given[name] = Given(asked.body["model"], reply)
        return reply

    def _anthropic(self, body: dict[str, Any]) -> None:
        _only(body, ANTHROPIC_FIELDS, "the request")
        _tools(body, lambda tool: (tool["name"], tool["input_schema"]))
        blocks = [block for turn in body["messages"] for block in turn["content"]]
        marks = sum("cache_control" in block for block in (*body.get("system", ()), *blocks))
        _check(marks <= 4, f"a maximum of 4 blocks with cache_control may be provided, found {marks}")
        thinking = body.get("thinking")
        _check(
            not (thinking and "temperature" in body), "`temperature` may not be set when thinking is enabled"
        )
        if thinking and thinking["type"] == "enabled":
            _check(1024 <= thinking["budget_tokens"] < body["max_tokens"], "budget_tokens is out of range")
        uses = any(block["type"] in ("tool_use", "tool_result") for block in blocks)
        _check("tools" in body or not uses, "requests with tool_use or tool_result blocks must define tools")
        waiting: list[str] = []
        used: set[str] = set()
        for place, turn in enumerate(body["messages"]):
            _only(turn, {"role", "content"}, "a message")
            _check(turn["role"] == ("assistant" if place % 2 else "user"), "roles must alternate, user first")
            _check(bool(turn["content"]), f"messages.{place}: content is empty")
            for block in turn["content"]:
                _only(block, BLOCK_FIELDS[block["type"]], f"messages.{place}")
                _check(block["type"] != "text" or block["text"].strip(), "text must contain non-whitespace")
            results = [block for block in turn["content"] if block["type"] == "tool_result"]
            _check(turn["content"][: len(results)] == results, "tool_result blocks must come first")
            _answered(waiting, [block["tool_use_id"] for block in results])
            waiting = self._anthropic_calls(body, turn, used)
        _answered(waiting, [])
        if thinking:
            last = next((turn for turn in reversed(body["messages"]) if turn["role"] == "assistant"), None)
            self._needs_thinking(body, last and [block.get("id") for block in last["content"]])

    def _anthropic_calls(self, body: dict[str, Any], turn: dict[str, Any], used: set[str]) -> list[str]:
        """The ids of a turn's calls, if each of its thoughts is one of the same answer and in its place."""
        content = turn["content"]
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        _check(not (calls and turn["role"] == "user"), "tool_use blocks are for the assistant")
        for block in content:
            if block["type"] == "tool_use":
                _check(ANTHROPIC_ID.fullmatch(block["id"]), "tool_use.id has a wrong form")
                _check(TOOL_NAME.fullmatch(block["name"]), "tool_use.name has a wrong form")
                _check(isinstance(block["input"], dict), "tool_use.input should be an object")
        _once(calls, used)
        if any("thinking" in block["type"] for block in content):
            thought = content[0]
            given = self._known(thought.get("signature", ""), body["model"], thought.get("thinking"))
            _check(calls == list(given.answer.ids), "thinking blocks cannot be modified: other calls follow")
        return calls

    def _chat(self, body: dict[str, Any]) -> None:
        _only(body, CHAT_FIELDS, "the request")
        _tools(body, lambda tool: (tool["function"]["name"], tool["function"]["parameters"]))
        waiting: list[str] = []
        used: set[str] = set()
        spoken = ""
        last: list[str] = []
        for place, entry in enumerate(body["messages"]):
            role = entry["role"]
            if role == "tool":
                _only(entry, {"role", "tool_call_id", "content"}, "a result")
                _check("tools" in body, "a result without tools")
                _check(waiting and entry["tool_call_id"] == waiting[0], "a tool message must follow its call")
                waiting, spoken = waiting[1:], "tool"
                continue
            _answered(waiting, [])
            _check(role != "system" or not place, "System message must be at the beginning")
            _check(role != spoken, "roles must alternate")
            spoken = role
            if role == "assistant":
                waiting = last = self._chat_calls(body, entry, used)
            else:
                _only(entry, {"role", "content"}, "a message")
                _check(bool(entry["content"]), "content is empty")
        _answered(waiting, [])
        self._needs_thinking(body, last)

    def _chat_calls(self, body: dict[str, Any], entry: dict[str, Any], used: set[str]) -> list[str]:
        _only(entry, {"role", "content", "tool_calls", "reasoning_content"}, "an answer")
        calls = entry.get("tool_calls", [])
        _check(entry["content"] if not calls else entry["content"] != "", "an answer with empty content")
        for call in calls:
            _only(call, {"id", "type", "function"}, "a call")
            _check(TOOL_NAME.fullmatch(call["function"]["name"]), "a function name has a wrong form")
            _check(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments are no object")
        ids = [call["id"] for call in calls]
        _once(ids, used)
        if "reasoning_content" in entry and ids:
            given = self._known(ids[0], body["model"], entry["reasoning_content"])
            _check(ids == list(given.answer.ids), "reasoning_content of another answer")
        return ids

    def _responses(self, body: dict[str, Any]) -> None:
        _only(body, RESPONSES_FIELDS, "the request")
        _check(body["store"] is False, "nothing may be stored here")
        _check(
            body.get("include") == ["reasoning.encrypted_content"], "encrypted reasoning was not asked for"
        )
        _check("temperature" not in body, "Unsupported parameter: 'temperature' with this model")
        _check("max_tokens" not in body, "Unsupported parameter: 'max_tokens'")
        _tools(body, lambda tool: (tool["name"], tool["parameters"]))
        parts = [
            part
            for item in body["input"]
            for field in ("content", "output")
            if isinstance(item.get(field), list)
            for part in item[field]
        ]
        marks = [part for part in parts if "prompt_cache_breakpoint" in part]
        _check(len(marks) <= 4, "at most 4 breakpoints")
        _check(all(part["type"] == "input_text" for part in marks), "a breakpoint on an answer")
        waiting: list[str] = []
        used: set[str] = set()
        last: list[str] = []
        items = body["input"]
        for place, item in enumerate(items):
            kind = item.get("type", "message")
            _only(item, ITEM_FIELDS[kind], f"input[{place}]")
            if kind == "function_call":
                _check("tools" in body, "a call without tools")
                _check(TOOL_NAME.fullmatch(item["name"]), "a function name has a wrong form")
                _once([item["call_id"]], used)
                waiting.append(item["call_id"])
                last.append(item["call_id"])
            elif kind == "function_call_output":
                _check(
                    waiting and item["call_id"] == waiting[0], "No tool call found for function call output"
                )
                waiting = waiting[1:]
            elif kind == "reasoning":
                self._responses_reasoning(body, items[place:])
            else:
                _answered(waiting, [])
                _check(item["role"] in ("system", "developer", "user", "assistant"), "a wrong role")
                last = [] if item["role"] == "assistant" else last
        _answered(waiting, [])
        self._needs_thinking(body, last[-1:])

    def _responses_reasoning(self, body: dict[str, Any], items: Sequence[dict[str, Any]]) -> None:
        """Reasoning is followed by the very items that it came with."""
        given = self._known(items[0]["encrypted_content"], body["model"], items[0]["summary"][0]["text"])
        came = [(item["type"], item["id"], item.get("call_id")) for item in responses_items(given.answer)]
        comes = [
            (item.get("type"), item.get("id"), item.get("call_id"))
            for item, _ in zip(items, came, strict=False)
        ]
        _check(came == comes, f"Item '{items[0]['id']}' was provided without its required following item")

    def _known(self, proof: str, model: str, thinking: str | None) -> Given:
        """The answer that a thought comes from."""
        given = self._given.get(proof)
        _check(given, "Invalid `signature` in `thinking` block")
        assert given is not None
        _check(given.model == model, "thinking of another model")
        _check(given.answer.thinking == thinking, "thinking blocks cannot be modified")
        return given

    def _needs_thinking(self, body: dict[str, Any], calls: Iterable[str | None] | None) -> None:
        """The last calls have to bring along the thinking that led to them, if the model is the same."""
        for name in calls or ():
            given = self._given.get(name or "")
            if given and given.answer.proof and given.model == body["model"]:
                _check(given.answer.thinking in json.dumps(body), "the thinking of the last calls is missing")


def _check(right: object, said: str) -> None:
    if not right:
        raise Refusal(said)


def _only(value: dict[str, Any], fields: set[str], where: str) -> None:
    _check(not set(value) - fields, f"Unknown fields in {where}: {sorted(set(value) - fields)}")


def _once(names: Sequence[str], used: set[str]) -> None:
    _check(len(set(names)) == len(names) and not used & set(names), "ids of calls must be unique")
    used.update(names)


def _answered(calls: Sequence[str], results: Sequence[str]) -> None:
    _check(list(calls) == list(results), f"calls {list(calls)} are followed by results {list(results)}")


def _tools(body: dict[str, Any], parts: Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]) -> None:
    tools = [parts(tool) for tool in body.get("tools", ())]
    _check("tools" not in body or tools, "tools are empty")
    _check(len({name for name, _ in tools}) == len(tools), "tool names must be unique")
    for name, schema in tools:
        _check(TOOL_NAME.fullmatch(name), f"tool name {name} has a wrong form")
        _check(schema.get("type") == "object", f"the schema of {name} is no object")
