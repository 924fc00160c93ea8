"""The Anthropic wire against a server on loopback (K2, K4, F5)."""

import json
from contextlib import asynccontextmanager

import pytest

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import (
    ChatMessage,
    ModelRequest,
    ModelTraits,
    NativeTool,
    StreamEnd,
    TextPiece,
    ToolCall,
    Usage,
)
from duckflow.llm.wire.anthropic import ANTHROPIC
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.endpoints import PROVIDERS, Endpoint
from fakes.model_server import Answer, Fault, ModelServer, Raw
from fakes.rows import every_row

MIXED = "日本語と絵文字 🦆👩‍💻 𠮷"
MARK = {"type": "ephemeral"}


def said(role, text, *, stable=False) -> ChatMessage:
    return ChatMessage(role=role, text=text, stable=stable)


def asking(*messages: ChatMessage, **fields) -> ModelRequest:
    given = {"output": "Decision", "messages": messages or (said("user", "hi"),), "time_limit_s": 120.0}
    return ModelRequest(**{**given, **fields})


@asynccontextmanager
async def model_at(server: ModelServer, model: str = "claude-sonnet-5-5"):
    endpoint = Endpoint(provider=PROVIDERS["anthropic"], model=model, address=server.url, key="sk-ant")
    client = WireModel(ANTHROPIC, endpoint, ModelTraits(name=endpoint.name))
    try:
        yield client
    finally:
        await client.aclose()


async def collected(model, request) -> list:
    return [piece async for piece in model.stream(request)]


async def body_for(*messages: ChatMessage, **fields) -> dict:
    with ModelServer([Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(*messages, **fields))
        return server.requests[0].body


def marks_in(blocks) -> list[str]:
    return [block["text"] for block in blocks if block.get("cache_control") == MARK]


async def test_K4_an_answer_is_streamed_without_its_thinking_and_ends_with_its_usage():
    with ModelServer([Answer("Hello, this is longer.", tokens=(120, 90, 8))]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking())
        (asked,) = server.requests
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == "Hello, this is longer."
    usage = Usage(input_tokens=120, cached_tokens=90, output_tokens=8)
    assert pieces[-1] == StreamEnd(stop="end", usage=usage)
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == "sk-ant"
    assert asked.headers["anthropic-version"]
    assert "authorization" not in asked.headers


async def test_tokens_written_to_the_cache_count_as_input():
    events = [
        {
            "type": "message_start",
            "message": {"usage": {"input_tokens": 5, "cache_creation_input_tokens": 100}},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    with ModelServer([Raw(raw)]) as server:
        async with model_at(server) as model:
            (end,) = await collected(model, asking())
    assert end.usage == Usage(input_tokens=105, cached_tokens=0, output_tokens=3)


@every_row("size", [1, 3, 64])
async def test_characters_cut_in_two_by_the_network_arrive_whole(size):
    with ModelServer([Answer(MIXED, chunk_bytes=size)]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking())
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == MIXED


async def test_A8_tool_use_becomes_tool_calls():
    calls = (("file_ops__write_file", json.dumps({"path": "あ.py"}, ensure_ascii=False)), ("shell__run", ""))
    tool = NativeTool(name="file_ops__write_file", description="Write", parameters={"type": "object"})
    with ModelServer([Answer("", calls=calls)]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking(tools=(tool,)))
        offered = server.requests[0].body["tools"]
    assert offered == [
        {"name": "file_ops__write_file", "description": "Write", "input_schema": {"type": "object"}}
    ]
    assert pieces[0] == ToolCall(name="file_ops__write_file", arguments='{"path": "あ.py"}')
    assert pieces[1] == ToolCall(name="shell__run", arguments="{}")
    assert pieces[-1].stop == "tool_calls"


@every_row("stop", ["end", "length", "refusal"])
async def test_the_reason_for_the_end_is_told(stop):
    with ModelServer([Answer("so", stop=stop)]) as server:
        async with model_at(server) as model:
            assert (await collected(model, asking()))[-1].stop == stop


class TestPrompt:
    """How a prompt looks on this wire."""

    async def test_the_system_stands_apart_and_equal_roles_are_one_turn(self):
        body = await body_for(
            said("system", "rules"),
            said("user", "a"),
            said("user", "b"),
            said("assistant", "c"),
            said("user", "d"),
        )
        assert [block["text"] for block in body["system"]] == ["rules"]
        turns = [(turn["role"], [block["text"] for block in turn["content"]]) for turn in body["messages"]]
        assert turns == [("user", ["a", "b"]), ("assistant", ["c"]), ("user", ["d"])]

    async def test_F5_the_system_and_stable_messages_are_marked_for_the_cache(self):
        body = await body_for(
            said("system", "rules"), said("user", "a", stable=True), said("assistant", "b"), said("user", "c")
        )
        assert marks_in(body["system"]) == ["rules"]
        assert marks_in([block for turn in body["messages"] for block in turn["content"]]) == ["a"]

    async def test_F5_at_most_four_marks_are_set_and_the_latest_count(self):
        turns = [said(("user", "assistant")[n % 2], f"m{n}", stable=True) for n in range(7)]
        body = await body_for(said("system", "rules"), *turns)
        assert marks_in(body["system"]) == ["rules"]
        assert marks_in([block for turn in body["messages"] for block in turn["content"]]) == [
            "m4",
            "m5",
            "m6",
        ]

    async def test_F5_the_mark_stands_on_the_stable_part_of_the_system(self):
        body = await body_for(
            said("system", "fixed", stable=True), said("system", "volatile"), said("user", "a")
        )
        assert marks_in(body["system"]) == ["fixed"]

    async def test_empty_messages_are_left_out_and_the_user_begins(self):
        body = await body_for(
            said("system", " "), said("assistant", "hello"), said("user", ""), said("user", "x")
        )
        assert "system" not in body
        assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
        assert all(block["text"].strip() for turn in body["messages"] for block in turn["content"])

    async def test_a_later_word_of_the_program_is_not_taken_for_the_models(self):
        body = await body_for(said("user", "a"), said("system", "note"), said("user", "b"))
        assert [turn["role"] for turn in body["messages"]] == ["user"]

    async def test_the_answer_may_be_as_long_as_asked_even_after_thinking(self):
        assert (await body_for(max_tokens=1000))["max_tokens"] > 1000

    async def test_a_refused_temperature_is_left_out_from_then_on(self):
        with ModelServer(
            [Fault(400, "`temperature` is deprecated for this model."), Answer("a"), Answer("b")]
        ) as server:
            async with model_at(server) as model:
                await collected(model, asking(temperature=0.5))
                await collected(model, asking(temperature=0.5))
            assert ["temperature" in asked.body for asked in server.requests] == [True, False, False]


@every_row(
    ("type_", "kind", "key"),
    [
        ("overloaded_error", Unavailable, "llm.server_error"),
        ("api_error", Unavailable, "llm.server_error"),
        ("rate_limit_error", Unavailable, "llm.rate_limited"),
        ("authentication_error", ProviderError, "llm.wrong_key"),
        ("invalid_request_error", ProviderError, "llm.refused_request"),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(type_, kind, key):
    error = json.dumps({"type": type_, "message": "Overloaded"})
    with ModelServer([Answer("half an", error=error, fault="no_end")]) as server:
        async with model_at(server) as model:
            with pytest.raises(kind) as caught:
                await collected(model, asking())
    assert (type(caught.value), caught.value.key) == (kind, key)
