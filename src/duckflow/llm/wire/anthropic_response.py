"""Assemble an Anthropic answer from its events."""

from collections.abc import Iterator

from pydantic import JsonValue

from duckflow.domain.errors import Unavailable
from duckflow.domain.model import (
    ModelPiece,
    StopReason,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    Thought,
    ToolCall,
    Usage,
)
from duckflow.llm.wire.json_fields import JsonFields, StreamedError

STOPS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}

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
"""HTTP status by the type of an error inside a stream, which has none."""


class _OpenBlock:
    """Block that is still arriving. `written` is the JSON of a call or the text of a thought."""

    def __init__(self, block: JsonFields, place: int) -> None:
        self.begun, self.type, self.place = block, block.text("type"), place
        self.written = block.text("thinking")
        self.signature = block.text("signature")


class AnthropicResponse:
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        self.ended = False
        self._model = model
        self._blocks: dict[int, _OpenBlock] = {}
        self._said = False
        self._stop: StopReason = "end"
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
                self.ended = True
            case _:
                pass
        return []

    def rest(self) -> Iterator[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        if not self.ended:
            raise Unavailable("llm.cut_off")
        for block in self._blocks.values():
            begun = block.begun
            if block.type == "tool_use":
                arguments = block.written or begun.json("input") or "{}"
                yield ToolCall(name=begun.text("name"), arguments=arguments, id=begun.text("id"))
        yield from self._thoughts()
        yield StreamEnd(stop=self._stop, usage=self._usage())

    def _whole(self, message: JsonFields) -> list[ModelPiece]:
        """Process the answer of a server that does not stream."""
        self.ended = True
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
        return self._pieces(delta.text("text"), delta.text("thinking"))

    def _pieces(self, text: str, thinking: str) -> list[ModelPiece]:
        self._said = self._said or bool(text.strip())
        return [
            *([ThinkingPiece(text=thinking)] if thinking else []),
            *([TextPiece(text=text)] if text else []),
        ]

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
        """Merge token counts. The end repeats some counts of the start; the latest value counts."""
        usage = message.inner("usage").values
        self._counts |= {name: value for name, value in usage.items() if value is not None}

    def _usage(self) -> Usage:
        """Return the counts. Anthropic's `input_tokens` excludes cached tokens, ours includes them."""
        counts = JsonFields(self._counts)
        read, written = counts.count("cache_read_input_tokens"), counts.count("cache_creation_input_tokens")
        return Usage(
            input_tokens=counts.count("input_tokens") + read + written,
            cached_tokens=read,
            cache_written_tokens=written,
            output_tokens=counts.count("output_tokens"),
            thinking_tokens=counts.inner("output_tokens_details").count("thinking_tokens"),
        )
