"""Anthropic's Messages wire format, with marks for its prompt cache."""

import json
from collections.abc import Iterator
from itertools import groupby

from pydantic import JsonValue

from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, Thought, ToolCall, Usage
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.client import STOPS, WireFormat, WireResponse
from duckflow.llm.wire.fallbacks import Body, Fallback
from duckflow.llm.wire.json_fields import JsonFields, StreamedError
from duckflow.llm.wire.request import answer_room, cache_marks, leading_system, pictures_of, usable_messages

VERSION = "2023-06-01"
MARK = {"type": "ephemeral"}
BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}
"""Thinking tokens by effort, for models that need a fixed budget."""

ERROR_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status by type of error, for errors inside a stream, which carry no status."""

_VERSION = lazy_regex(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_ID = lazy_regex(r"[a-zA-Z0-9_-]{1,64}")


def _headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def _body(endpoint: Endpoint, traits: ModelTraits, request: ModelRequest) -> Body:
    system, turns = split_system(request, traits.name)
    version = _version(endpoint.model)
    # Models before 3.7 do not think, and refuse a higher limit.
    room = answer_room(traits, request) if version >= (3, 7) else request.max_tokens
    body: Body = {"model": endpoint.model, "max_tokens": room, "messages": turns, "stream": True}
    if system:
        body["system"] = system
    if request.effort is not None:
        body |= _thinking(version, request.effort, room, turns)
    if request.temperature is not None and "thinking" not in body:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    return body


def _version(model: str) -> tuple[int, int]:
    """Return the version in a Claude model's name. Other makers' models count as 4.5."""
    if found := _VERSION.search(model):
        return int(found[1]), int(found[2] or 0)
    return (9, 0) if "claude" in model else (4, 5)


def _thinking(version: tuple[int, int], effort: str, room: int, turns: list[Body]) -> Body:
    """Return the fields that make a model think, by version. Newer models decide themselves when to think."""
    if version >= (4, 6):
        shown = {"display": "summarized"} if version >= (4, 7) else {}  # 4.6 does so by default
        return {"thinking": {"type": "adaptive", **shown}, "output_config": {"effort": effort}}
    answers: list[list[Body]] = [turn["content"] for turn in turns if turn["role"] == "assistant"]
    # With a fixed budget, an answer after tool calls may think only if the calls were preceded by thinking.
    called = answers and any(block["type"] == "tool_use" for block in answers[-1])
    begun = not called or "thinking" in answers[-1][0]["type"]
    if version < (3, 7) or room < 2 * BUDGETS["low"] or not begun:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": min(BUDGETS[effort], room // 2)}}


def split_system(request: ModelRequest, model: str) -> tuple[list[Body], list[Body]]:
    """Return the system blocks and the turns in the wire's format, with cache marks."""
    messages = [
        message
        for message in usable_messages(request, model, fitting_id=_ID)
        if message.text.strip() or message.calls or message.result_of
    ]
    system, marks = leading_system(messages), cache_marks(messages)
    written = [list(_blocks(message, request)) for message in messages]
    for place in marks:
        written[place][-1]["cache_control"] = MARK
    turns: list[Body] = []
    # Later messages from the program can't be system blocks, so they are sent as the user's.
    for answers, places in groupby(
        range(system, len(messages)), key=lambda place: messages[place].role == "assistant"
    ):
        content = [block for place in places for block in written[place]]
        turns.append({"role": "assistant" if answers else "user", "content": content})
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": "Begin."}]})
    return [block for blocks in written[:system] for block in blocks], turns


def _blocks(message: ChatMessage, request: ModelRequest) -> Iterator[Body]:
    """Yield the blocks of a message, with its thoughts verbatim and in their original places."""
    text = [{"type": "text", "text": message.text}] if message.text.strip() else []
    if message.result_of:
        content = [*_pictures(message, request), *text] or [{"type": "text", "text": "(nothing)"}]
        failed = {"is_error": True} if message.failed else {}
        yield {"type": "tool_result", "tool_use_id": message.result_of, "content": content, **failed}
        return
    if message.role != "assistant":
        yield from _pictures(message, request)
        yield from text
        return
    calls = (
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in message.calls
    )
    for place, part in enumerate([*text, *calls, None]):
        for thought in message.thoughts:
            if thought.place == place:
                readable = {"thinking": thought.text} if thought.data.get("type") == "thinking" else {}
                yield {**thought.data, **readable}
        if part is not None:
            yield part


def _pictures(message: ChatMessage, request: ModelRequest) -> Iterator[Body]:
    for media, data in pictures_of(message, request):
        yield {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def _without_thinking(body: Body) -> Body:
    """Remove the thinking fields, and earlier thoughts, which a model may refuse too."""
    rest = {name: value for name, value in body.items() if name not in ("thinking", "output_config")}
    turns: list[Body] = []
    for turn in rest["messages"]:
        content = [block for block in turn["content"] if "thinking" not in block["type"]]
        turns.append({**turn, "content": content})
    return {**rest, "messages": turns}


class _OpenBlock:
    """Block that is still arriving. `written` is the JSON of a call or the text of a thought."""

    def __init__(self, block: JsonFields, place: int) -> None:
        self.begun, self.type, self.place = block, block.text("type"), place
        self.written = block.text("thinking")
        self.signature = block.text("signature")


class AnthropicResponse(WireResponse):
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        super().__init__(model)
        self._blocks: dict[int, _OpenBlock] = {}
        self._counts: dict[str, JsonValue] = {}

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking."""
        event = JsonFields.parse(data)
        index, delta = event.count("index"), event.inner("delta")
        if error := event.inner("error").values:
            raise StreamedError(ERROR_STATUS.get(str(error.get("type")), 500))
        match event.text("type"):
            case "message":
                return self._whole(event)
            case "message_start":
                self._count(event.inner("message"))
            case "content_block_start":
                return self._begin(index, event.inner("content_block"))
            case "content_block_delta":
                return self._continue(index, delta)
            case "message_delta":
                self._count(event)
                self._stop = STOPS.get(delta.text("stop_reason"), "end")
            case "message_stop":
                self.ended = self.finished = True
            case _:
                pass
        return []

    def _parts(self) -> Iterator[ModelPiece]:
        for block in self._blocks.values():
            begun = block.begun
            if block.type == "tool_use":
                arguments = block.written or begun.json("input") or "{}"
                yield ToolCall(name=begun.text("name"), arguments=arguments, id=begun.text("id"))
        yield from self._thoughts()

    def _whole(self, message: JsonFields) -> list[ModelPiece]:
        """Process the answer of a server that does not stream."""
        self.ended = self.finished = True
        self._count(message)
        self._stop = STOPS.get(message.text("stop_reason"), "end")
        blocks = enumerate(message.objects("content"))
        return [piece for index, block in blocks for piece in self._begin(index, block)]

    def _begin(self, index: int, block: JsonFields) -> list[ModelPiece]:
        kind = block.text("type")
        if kind in ("tool_use", "thinking", "redacted_thinking"):
            called = sum(known.type == "tool_use" for known in self._blocks.values())
            self._blocks[index] = _OpenBlock(block, self._said + called)
        return self._pieces(block.text("text") if kind == "text" else "", block.text("thinking"))

    def _continue(self, index: int, delta: JsonFields) -> list[ModelPiece]:
        if block := self._blocks.get(index):
            block.written += delta.text("partial_json") or delta.text("thinking")
            block.signature += delta.text("signature")
        return self._pieces(delta.text("text"), delta.text("thinking"), delta.text("partial_json"))

    def _thoughts(self) -> Iterator[Thought]:
        """Yield thinking to send back later. Without a signature it is incomplete and would be refused."""
        for block in self._blocks.values():
            data: dict[str, JsonValue] = {"type": block.type}
            if block.type == "thinking" and block.signature:
                data["signature"] = block.signature
                yield Thought(model=self._model, text=block.written, data=data, place=block.place)
            elif block.type == "redacted_thinking":
                data["data"] = block.begun.text("data")
                yield Thought(model=self._model, data=data, place=block.place)

    def _count(self, message: JsonFields) -> None:
        """Merge token counts. The end repeats some counts of the start; the latest value counts.

        Anthropic's `input_tokens` excludes cached tokens, ours includes them.
        """
        usage = message.inner("usage").values
        self._counts |= {name: value for name, value in usage.items() if value is not None}
        counts = JsonFields(self._counts)
        read, written = counts.count("cache_read_input_tokens"), counts.count("cache_creation_input_tokens")
        self._usage = Usage(
            input_tokens=counts.count("input_tokens") + read + written,
            cached_tokens=read,
            cache_written_tokens=written,
            output_tokens=counts.count("output_tokens"),
            thinking_tokens=counts.inner("output_tokens_details").count("thinking_tokens"),
        )


FALLBACKS = (
    Fallback("temperature", ("temperature",)),
    Fallback("output_config", ("effort", "output_config")),
    Fallback("thinking", ("adaptive",), set={"thinking": {"type": "adaptive"}}),
    Fallback("thinking.display", ("display",)),
    Fallback("thinking", ("support thinking", "thinking is not supported")),
    Fallback("messages", ("thinking",), _without_thinking, lasting=False),
)

ANTHROPIC = WireFormat("/v1/messages", _headers, _body, AnthropicResponse, FALLBACKS)
