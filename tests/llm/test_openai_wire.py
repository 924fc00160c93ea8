"""The OpenAI-compatible wire against a server on loopback (K2, K4)."""

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
from duckflow.llm import streams
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.endpoints import PROVIDERS, Endpoint
from duckflow.llm.wire.openai import OPENAI
from fakes.model_server import Answer, Fault, ModelServer, Raw
from fakes.rows import every_row

MIXED = "さあ、始めましょう 🦆👩‍💻 — naïve café 𠮷野家"
WRITE = NativeTool(name="file_ops__write_file", description="Write a file", parameters={"type": "object"})


def asking(**fields) -> ModelRequest:
    given = {"output": "Decision", "messages": (ChatMessage(role="user", text="hi"),), "time_limit_s": 120.0}
    return ModelRequest(**{**given, **fields})


def endpoint_at(server: ModelServer, provider: str = "openai", key: str = "sk-test") -> Endpoint:
    return Endpoint(provider=PROVIDERS[provider], model="some-model", address=f"{server.url}/v1", key=key)


@asynccontextmanager
async def model_at(server: ModelServer, *, small: bool = False, key: str = "sk-test"):
    model = WireModel(
        OPENAI, endpoint_at(server, key=key), ModelTraits(name="openai:some-model", small=small)
    )
    try:
        yield model
    finally:
        await model.aclose()


async def collected(model, request) -> list:
    return [piece async for piece in model.stream(request)]


def text_of(pieces) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


async def test_K4_an_answer_is_streamed_in_pieces_and_ends_with_its_usage():
    with ModelServer([Answer("Hello, this is longer than one piece.", tokens=(120, 90, 8))]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking())
    assert text_of(pieces) == "Hello, this is longer than one piece."
    assert sum(isinstance(piece, TextPiece) for piece in pieces) > 3
    usage = Usage(input_tokens=120, cached_tokens=90, output_tokens=8)
    assert pieces[-1] == StreamEnd(stop="end", usage=usage)


@every_row("size", [1, 2, 3, 5, 64])
async def test_characters_cut_in_two_by_the_network_arrive_whole(size):
    with ModelServer([Answer(MIXED, chunk_bytes=size)]) as server:
        async with model_at(server) as model:
            assert text_of(await collected(model, asking())) == MIXED


async def test_half_a_surrogate_pair_in_an_event_is_passed_on_and_not_a_fault():
    halves = [
        b'data: {"choices": [{"delta": {"content": "%b"}}]}' % half for half in (rb"\ud83e", rb"\udd86")
    ]
    events = b"\n\n".join([*halves, b"data: [DONE]", b""])
    with ModelServer([Raw(events)]) as server:
        async with model_at(server) as model:
            text = text_of(await collected(model, asking()))
    assert text.encode("utf-16-le", "surrogatepass").decode("utf-16-le") == "🦆"


async def test_the_request_has_what_the_wire_wants():
    messages = (
        ChatMessage(role="system", text="You are Duckflow."),
        ChatMessage(role="user", text="one", stable=True),
        ChatMessage(role="user", text="two"),
        ChatMessage(role="assistant", text="three"),
        ChatMessage(role="user", text="four"),
    )
    with ModelServer([Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(messages=messages, max_tokens=77, temperature=0.2))
        (asked,) = server.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-test"
    assert asked.body == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "You are Duckflow."},
            {"role": "user", "content": "one\n\ntwo"},
            {"role": "assistant", "content": "three"},
            {"role": "user", "content": "four"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 77,
        "temperature": 0.2,
    }


async def test_without_a_key_none_is_sent():
    with ModelServer([Answer("ok")]) as server:
        async with model_at(server, key="") as model:
            await collected(model, asking())
        assert "authorization" not in server.requests[0].headers


async def test_broken_text_of_a_file_does_not_stop_a_call():
    with ModelServer([Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(messages=(ChatMessage(role="user", text="a\udcffb"),)))
        assert server.requests[0].body["messages"][0]["content"] == "a?b"


@every_row(("small", "sent"), [(True, True), (False, False)])
async def test_only_a_small_model_is_bound_to_the_schema(small, sent):
    schema = {"type": "object", "properties": {"reply": {"type": "string"}}}
    with ModelServer([Answer("{}")]) as server:
        async with model_at(server, small=small) as model:
            await collected(model, asking(answer_schema=schema))
        body = server.requests[0].body
    assert ("response_format" in body) is sent
    if sent:
        assert body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "Decision", "schema": schema},
        }


async def test_A8_tool_calls_are_put_together_from_their_pieces():
    calls = (
        ("file_ops__write_file", json.dumps({"path": "あ.py", "content": "print('🦆')"})),
        ("shell__run", "{}"),
    )
    with ModelServer([Answer("I write.", calls=calls)]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking(tools=(WRITE,)))
        offered = server.requests[0].body["tools"]
    assert offered[0]["function"] == {
        "name": "file_ops__write_file",
        "description": "Write a file",
        "parameters": {"type": "object"},
    }
    assert [piece for piece in pieces if isinstance(piece, ToolCall)] == [
        ToolCall(name=name, arguments=arguments) for name, arguments in calls
    ]
    assert pieces[-1].stop == "tool_calls"


async def test_calls_that_all_have_index_0_but_their_own_ids_stay_apart():
    chunk = {
        "choices": [
            {
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "a", "function": {"name": "x", "arguments": {"n": 1}}},
                        {"index": 0, "id": "b", "function": {"name": "y", "arguments": '{"n": 2}'}},
                    ]
                },
                "finish_reason": "stop",
            }
        ]
    }
    with ModelServer([Raw(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking())
    assert pieces == [
        ToolCall(name="x", arguments='{"n": 1}'),
        ToolCall(name="y", arguments='{"n": 2}'),
        StreamEnd(stop="tool_calls"),
    ]


@every_row("stop", ["end", "length", "refusal"])
async def test_the_reason_for_the_end_is_told(stop):
    with ModelServer([Answer("so", stop=stop)]) as server:
        async with model_at(server) as model:
            assert (await collected(model, asking()))[-1].stop == stop


async def test_a_server_that_does_not_stream_is_understood_too():
    with ModelServer([Answer("all at once", streamed=False, tokens=(7, 0, 3))]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking())
    assert pieces == [TextPiece(text="all at once"), StreamEnd(usage=Usage(input_tokens=7, output_tokens=3))]


async def test_content_in_parts_is_read_without_its_thinking():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]
    chunk = {"choices": [{"delta": {"content": parts, "reasoning_content": "hm"}, "finish_reason": "stop"}]}
    with ModelServer([Raw(b"data: " + json.dumps(chunk).encode() + b"\n\n")]) as server:
        async with model_at(server) as model:
            assert text_of(await collected(model, asking())) == "yes"


@every_row(
    ("error", "kind", "key"),
    [
        ('{"code": 502, "message": "upstream"}', Unavailable, "llm.server_error"),
        ('{"code": "server_error", "message": "oops"}', Unavailable, "llm.server_error"),
        ('{"code": 429, "message": "slow down"}', Unavailable, "llm.rate_limited"),
        ('{"code": 400, "message": "bad"}', ProviderError, "llm.refused_request"),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(error, kind, key):
    with ModelServer([Answer("half an", error=error, fault="no_end")]) as server:
        async with model_at(server) as model:
            with pytest.raises(kind) as caught:
                await collected(model, asking())
    assert caught.value.key == key
    assert type(caught.value) is kind


class TestFallbacks:
    """What a compatible server refuses is left out, at once and from then on."""

    async def test_a_refused_schema_is_left_out_and_remembered(self):
        refusal = Fault(400, "This model does not support response format `json_schema`.")
        with ModelServer([refusal, Answer("{}"), Answer("{}")]) as server:
            async with model_at(server, small=True) as model:
                await collected(model, asking(answer_schema={"type": "object"}))
                await collected(model, asking(answer_schema={"type": "object"}))
            sent = ["response_format" in asked.body for asked in server.requests]
        assert sent == [True, False, False]

    async def test_several_fields_are_given_up_one_after_the_other(self):
        refusals = [Fault(422, "extra: stream_options"), Fault(400, "Unsupported value: 'temperature'")]
        with ModelServer([*refusals, Answer("ok")]) as server:
            async with model_at(server) as model:
                assert text_of(await collected(model, asking(temperature=0.0))) == "ok"
            last = server.requests[-1].body
        assert "stream_options" not in last
        assert "temperature" not in last

    async def test_tools_are_offered_without_thinking_where_both_are_refused(self):
        refusal = Fault(400, "Function tools with reasoning_effort are not supported here.")
        with ModelServer([refusal, Answer("ok")]) as server:
            async with model_at(server) as model:
                await collected(model, asking(tools=(WRITE,)))
            assert server.requests[-1].body["reasoning_effort"] == "none"

    async def test_the_same_refusal_twice_is_an_error(self):
        refusal = Fault(400, "temperature is wrong")
        with ModelServer([refusal, refusal]) as server:
            async with model_at(server) as model:
                with pytest.raises(ProviderError) as caught:
                    await collected(model, asking(temperature=0.0))
            assert len(server.requests) == 2
        assert caught.value.values["detail"] == "temperature is wrong"

    async def test_a_fallback_that_does_not_help_is_not_tried_again(self):
        refusal = Fault(400, "Function tools with reasoning_effort are not supported here.")
        with ModelServer([refusal, refusal, refusal]) as server:
            async with model_at(server) as model:
                with pytest.raises(ProviderError, match="reasoning_effort"):
                    await collected(model, asking(tools=(WRITE,)))
            assert len(server.requests) == 2

    async def test_an_answer_that_had_begun_is_not_asked_for_again(self):
        error = '{"code": 400, "message": "temperature"}'
        with ModelServer([Answer("half an", error=error, fault="no_end"), Answer("never heard")]) as server:
            async with model_at(server) as model:
                with pytest.raises(ProviderError, match="temperature"):
                    await collected(model, asking(temperature=0.0))
            assert len(server.requests) == 1

    async def test_any_other_refusal_is_not_repeated(self):
        with ModelServer([Fault(400, "the prompt is too long")]) as server:
            async with model_at(server, small=True) as model:
                with pytest.raises(ProviderError, match="too long"):
                    await collected(model, asking(answer_schema={}, temperature=0.0))
            assert len(server.requests) == 1


async def test_OpenAI_itself_gets_the_field_its_newer_models_want():
    openai = PROVIDERS["openai"]
    endpoint = Endpoint(provider=openai, model="gpt-6.1-terra", address=openai.address, key="sk")
    body = OPENAI.body(endpoint, ModelTraits(name=endpoint.name), asking(max_tokens=1000))
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] > 1000


async def test_K4_calls_share_a_connection(monkeypatch):
    monkeypatch.setattr(streams, "END_PATIENCE_S", 60.0)
    with ModelServer([Answer("one"), Answer("two"), Answer("three")]) as server:
        server.keeps_open = True
        async with model_at(server) as model:
            said = [text_of(await collected(model, asking())) for _ in range(3)]
    assert (said, len(server.connections)) == (["one", "two", "three"], 1)
