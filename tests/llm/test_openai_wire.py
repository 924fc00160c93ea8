"""The OpenAI-compatible wire against a server on loopback (K2, K4)."""

import json
from contextlib import asynccontextmanager

import pytest

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import (
    CallPiece,
    ChatMessage,
    ModelRequest,
    ModelTraits,
    NativeTool,
    Picture,
    StreamEnd,
    TextPiece,
    ToolCall,
    Usage,
)
from duckflow.llm import streams
from duckflow.llm.endpoints import PROVIDERS, THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.openai import OPENAI
from fakes.model_server import Answer, ModelServer, Raw
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
        "max_tokens": 77 + THINKING_ALLOWANCE,
        "temperature": 0.2,
    }


def body_at(provider: str, model: str, request: ModelRequest) -> dict:
    address = PROVIDERS[provider].address
    endpoint = Endpoint(provider=PROVIDERS[provider], model=model, address=address, key="sk")
    return OPENAI.body(endpoint, ModelTraits(name=endpoint.name, window=200_000), request)


def test_F5_at_OpenRouter_the_parts_that_are_repeated_are_marked_for_models_that_want_it():
    call = ToolCall(name=WRITE.name, arguments="{}", id="c1")
    request = asking(
        messages=(
            ChatMessage(role="system", text="rules", stable=True),
            ChatMessage(role="user", text="task", stable=True),
            ChatMessage(role="assistant", text="", calls=(call,)),
            ChatMessage(role="user", text="written", result_of="c1", stable=True),
            ChatMessage(role="user", text="tail"),
        ),
        tools=(WRITE,),
        effort="high",
    )
    mark = {"cache_control": {"type": "ephemeral"}}
    for model in ("anthropic/claude-sonnet-5.5", "google/gemini-3.8-flash", "openai/gpt-6.1-terra"):
        body = body_at("openrouter", model, request)
        contents = [entry["content"] for entry in body["messages"]]
        assert contents == [
            [{"type": "text", "text": "rules", **mark}],
            [{"type": "text", "text": "task", **mark}],
            None,
            [{"type": "text", "text": "written", **mark}],
            "tail",
        ], model
        assert body["reasoning"] == {"effort": "high"}
        assert "reasoning_effort" not in body
    assert "cache_control" not in json.dumps(body_at("openrouter", "z-ai/glm-5", request))


def test_K4_thinking_has_room_beside_the_answer_everywhere_but_not_for_a_small_model_that_does_not_think():
    for provider, model, small, room in (
        ("openrouter", "anthropic/claude-sonnet-5.5", False, THINKING_ALLOWANCE),
        ("groq", "openai/gpt-oss-120b", False, THINKING_ALLOWANCE),
        ("mistral", "magistral-medium", False, THINKING_ALLOWANCE),
        ("ollama", "qwen3:4b", True, THINKING_ALLOWANCE),
        ("ollama", "qwen2.5-coder:1.5b", True, 0),
    ):
        endpoint = Endpoint(provider=PROVIDERS[provider], model=model, address="http://127.0.0.1:1")
        traits = ModelTraits(name=endpoint.name, window=200_000, small=small)
        body = OPENAI.body(endpoint, traits, asking(max_tokens=500))
        assert body["max_tokens"] == 500 + room, model


def test_ids_and_the_cache_key_have_the_form_that_Mistral_wants():
    call = ToolCall(name=WRITE.name, arguments="{}", id="toolu_01AbC")
    answer = ChatMessage(role="assistant", text="", calls=(call, call.model_copy(update={"id": "aB3dE6gH9"})))
    results = [ChatMessage(role="user", text="ok", result_of=call.id) for call in answer.calls]
    body = body_at(
        "mistral", "mistral-large-latest", asking(messages=(answer, *results), tools=(WRITE,), cache_key="k")
    )
    called = [call["id"] for call in body["messages"][0]["tool_calls"]]
    assert called == [entry["tool_call_id"] for entry in body["messages"][1:]]
    assert called[1] == "aB3dE6gH9"
    assert all(len(name) == 9 and name.isalnum() for name in called)
    assert body["prompt_cache_key"] == "k"


@every_row(("effort", "sent"), [("low", "none"), ("medium", "high"), ("high", "high")])
def test_K6_Mistrals_models_are_asked_to_think_or_not_to_think(effort, sent):
    assert body_at("mistral", "mistral-small-latest", asking(effort=effort))["reasoning_effort"] == sent


async def test_a_late_word_of_the_program_is_the_users_and_a_pictures_result_is_shown_by_the_user():
    call = ToolCall(name=WRITE.name, arguments="{}", id="c1")
    picture = Picture(path="duck.png", media="image/png", digest="d")
    messages = (
        ChatMessage(role="user", text="a"),
        ChatMessage(role="system", text="note"),
        ChatMessage(role="assistant", text="", calls=(call,)),
        ChatMessage(role="user", text="seen", result_of="c1", pictures=(picture,)),
        ChatMessage(role="user", text="b"),
    )
    body = body_at("groq", "m", asking(messages=messages, tools=(WRITE,), picture_data={"d": "aGk="}))
    assert [entry["role"] for entry in body["messages"]] == ["user", "assistant", "tool", "user"]
    assert body["messages"][0]["content"] == "a\n\nnote"
    shown, said = body["messages"][-1]["content"]
    assert shown["image_url"]["url"] == "data:image/png;base64,aGk="
    assert said["text"] == "b"


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
        ToolCall(name=name, arguments=arguments, id=f"call_{place}")
        for place, (name, arguments) in enumerate(calls)
    ]
    arrived = sum(piece.size for piece in pieces if isinstance(piece, CallPiece))
    assert arrived == sum(len(arguments.encode()) for _, arguments in calls), "shown while they are written"
    assert pieces[-1].stop == "end"


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
        CallPiece(size=16),
        ToolCall(name="x", arguments='{"n": 1}', id="a"),
        ToolCall(name="y", arguments='{"n": 2}', id="b"),
        StreamEnd(),
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
        ('{"code": "bad", "status_code": 400}', ProviderError, "llm.refused_request"),
        ('{"code": "tool_use_failed", "status_code": 400}', Unavailable, "llm.server_error"),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(error, kind, key):
    with ModelServer([Answer("half an", error=error, fault="no_end")]) as server:
        async with model_at(server) as model:
            with pytest.raises(kind) as caught:
                await collected(model, asking())
    assert caught.value.key == key
    assert type(caught.value) is kind


async def test_K4_calls_share_a_connection(monkeypatch):
    monkeypatch.setattr(streams, "END_PATIENCE_S", 60.0)
    with ModelServer([Answer("one"), Answer("two"), Answer("three")]) as server:
        server.keeps_open = True
        async with model_at(server) as model:
            said = [text_of(await collected(model, asking())) for _ in range(3)]
    assert (said, len(server.connections)) == (["one", "two", "three"], 1)
