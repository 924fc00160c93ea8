"""OpenAI's Responses against a server on loopback (K2, K4, K6, F5)."""

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
    ThinkingPiece,
    Thought,
    ToolCall,
    Usage,
)
from duckflow.llm.endpoints import PROVIDERS, Endpoint
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.responses import RESPONSES
from fakes.model_server import Answer, Fault, ModelServer, Raw
from fakes.rows import every_row

READ = NativeTool(name="read_file", description="Read", parameters={"type": "object"})
MARK = {"mode": "explicit"}


def said(role, text, **fields) -> ChatMessage:
    return ChatMessage(role=role, text=text, **fields)


def asking(*messages: ChatMessage, **fields) -> ModelRequest:
    given = {"output": "Decision", "messages": messages or (said("user", "hi"),), "time_limit_s": 120.0}
    return ModelRequest(**{**given, **fields})


@asynccontextmanager
async def model_at(server: ModelServer, model: str = "gpt-5.2", *, small: bool = False):
    endpoint = Endpoint(provider=PROVIDERS["responses"], model=model, address=f"{server.url}/v1", key="sk-x")
    client = WireModel(RESPONSES, endpoint, ModelTraits(name=endpoint.name, small=small, window=400_000))
    try:
        yield client
    finally:
        await client.aclose()


async def collected(model, request) -> list:
    return [piece async for piece in model.stream(request)]


async def body_for(*messages: ChatMessage, model: str = "gpt-5.2", small: bool = False, **fields) -> dict:
    with ModelServer([Answer("ok")]) as server:
        async with model_at(server, model, small=small) as client:
            await collected(client, asking(*messages, **fields))
        return server.requests[0].body


def text_of(pieces) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


async def test_K4_an_answer_is_streamed_with_its_thinking_and_ends_with_its_usage():
    answer = Answer(
        "さあ、始めましょう 🦆",
        calls=(("read_file", '{"path": "あ.py"}'), ("read_file", "")),
        ids=("c1", "c2"),
        thinking="First this.",
        proof="gAA",
        tokens=(120, 90, 8),
        written=20,
        chunk_bytes=5,
    )
    with ModelServer([answer]) as server:
        async with model_at(server) as model:
            pieces = await collected(model, asking(tools=(READ,)))
        (asked,) = server.requests
    assert asked.path == "/v1/responses"
    assert asked.headers["authorization"] == "Bearer sk-x"
    assert "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece)) == "First this."
    assert text_of(pieces) == "さあ、始めましょう 🦆"
    assert [piece for piece in pieces if isinstance(piece, ToolCall)] == [
        ToolCall(name="read_file", arguments='{"path": "あ.py"}', id="c1"),
        ToolCall(name="read_file", arguments="{}", id="c2"),
    ]
    usage = Usage(
        input_tokens=120, cached_tokens=90, cache_written_tokens=20, output_tokens=8, thinking_tokens=1
    )
    assert pieces[-1] == StreamEnd(usage=usage)
    reasoning = next(piece for piece in pieces if isinstance(piece, Thought) and piece.text)
    assert reasoning.data["encrypted_content"] == "gAA"
    assert reasoning.place == 0


async def test_the_request_has_what_the_wire_wants():
    body = await body_for(
        said("system", "rules"),
        said("user", "a"),
        said("user", "tail"),
        tools=(READ,),
        effort="low",
        cache_key="k",
    )
    room = body.pop("max_output_tokens")
    assert room > 30_000 - 4096
    assert body == {
        "model": "gpt-5.2",
        "input": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "tail"},
        ],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "prompt_cache_key": "k",
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
    }


async def test_K6_only_models_that_think_are_asked_for_their_thinking_and_only_others_have_a_temperature():
    for name, thinks in (
        ("gpt-6.1-terra", True),
        ("gpt-5", True),
        ("o4-mini", True),
        ("gpt-4.1", False),
        ("gpt-5-chat-latest", False),
    ):
        body = await body_for(model=name, temperature=0.5)
        assert ("reasoning" in body, "temperature" in body) == (thinks, not thinks), name


async def test_K6_thinking_of_all_turns_counts_where_the_model_can_use_it():
    assert (await body_for(model="gpt-5.4"))["reasoning"]["context"] == "all_turns"
    assert "context" not in (await body_for(model="gpt-5.2"))["reasoning"]


async def test_F5_the_parts_that_are_repeated_are_marked_where_marks_cost_and_count():
    messages = (
        said("system", "rules", stable=True),
        said("user", "task", stable=True),
        said("assistant", "", calls=(ToolCall(name="read_file", arguments="{}", id="c1"),), stable=True),
        said("user", "line", result_of="c1", stable=True),
        said("user", "tail"),
    )
    body = await body_for(*messages, model="gpt-5.6-sol", tools=(READ,))
    marked = [
        part["text"]
        for item in body["input"]
        for part in (item.get("content") or item.get("output") or [])
        if isinstance(part, dict) and part.get("prompt_cache_breakpoint") == MARK
    ]
    assert marked == ["rules", "task", "line"]
    assert body["prompt_cache_options"] == MARK
    assert "prompt_cache" not in json.dumps(await body_for(*messages, model="gpt-5.5", tools=(READ,)))


async def test_only_a_small_model_is_bound_to_the_schema():
    schema = {"type": "object"}
    bound = {"type": "json_schema", "name": "Decision", "schema": schema, "strict": False}
    assert (await body_for(answer_schema=schema, small=True))["text"] == {"format": bound}
    assert "text" not in await body_for(answer_schema=schema)


@every_row(
    ("refusal", "model", "gone"),
    [
        ("Your organization must be verified to generate reasoning summaries.", "gpt-5.2", '"summary"'),
        (
            "Unsupported value: 'low' is not supported with this model. (reasoning.effort)",
            "gpt-5.2",
            '"effort"',
        ),
        ("Unknown parameter: 'prompt_cache_key'", "gpt-5.2", "prompt_cache_key"),
        ("Unknown parameter: 'prompt_cache_options'", "gpt-5.6", "prompt_cache_breakpoint"),
        ("Encrypted content is not supported with this model.", "gpt-5.2", "include"),
        ("Unsupported parameter: 'temperature'", "gpt-4.1", "temperature"),
    ],
)
async def test_what_a_server_refuses_is_left_out_from_then_on(refusal, model, gone):
    request = asking(
        said("system", "rules", stable=True), said("user", "a"), effort="low", cache_key="k", temperature=0.1
    )
    with ModelServer([Fault(400, refusal), Answer("a"), Answer("b")]) as server:
        async with model_at(server, model) as client:
            await collected(client, request)
            await collected(client, request)
        assert [gone in json.dumps(asked.body) for asked in server.requests] == [True, False, False]


async def test_K6_thinking_that_can_not_be_decrypted_is_left_out_once_and_asked_for_still():
    thought = Thought(
        model="responses:gpt-5.2", data={"type": "reasoning", "id": "r1", "encrypted_content": "gAA"}
    )
    answer = said("assistant", "So.", thoughts=(thought,))
    refusal = Fault(400, "The encrypted content gAA could not be verified.")
    with ModelServer([refusal, Answer("a")]) as server:
        async with model_at(server) as client:
            await collected(client, asking(said("user", "a"), answer, said("user", "b")))
        bodies = [asked.body for asked in server.requests]
    assert ["gAA" in json.dumps(body) for body in bodies] == [True, False]
    assert bodies[1]["include"] == ["reasoning.encrypted_content"]


async def test_the_name_of_a_refused_parameter_counts_even_if_the_sentence_has_it_not():
    said_so = {"error": {"message": "Unsupported value: 'low'.", "param": "reasoning.effort"}}
    refusal = Raw(json.dumps(said_so).encode(), "application/json", 400)
    with ModelServer([refusal, Answer("a")]) as server:
        async with model_at(server) as client:
            assert text_of(await collected(client, asking(effort="low"))) == "a"
        assert server.requests[-1].body["reasoning"] == {"summary": "auto"}


@every_row("stop", ["end", "length", "refusal"])
async def test_the_reason_for_the_end_is_told(stop):
    with ModelServer([Answer("so", stop=stop)]) as server:
        async with model_at(server) as model:
            assert (await collected(model, asking()))[-1].stop == stop


async def test_a_refusal_is_shown_and_ends_the_answer():
    item = {"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "No."}]}
    events = [
        {"type": "response.refusal.delta", "delta": "No."},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ]
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    with ModelServer([Raw(raw)]) as server:
        async with model_at(server) as model:
            assert await collected(model, asking()) == [TextPiece(text="No."), StreamEnd(stop="refusal")]


async def test_a_server_that_does_not_stream_or_only_at_the_end_is_understood_too():
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "So."}]},
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": {"path": "a"}},
    ]
    whole = {"object": "response", "status": "completed", "output": output}
    streamed = b"data: " + json.dumps({"type": "response.completed", "response": whole}).encode() + b"\n\n"
    for raw in (Raw(json.dumps(whole).encode(), "application/json"), Raw(streamed)):
        with ModelServer([raw]) as server:
            async with model_at(server) as model:
                assert await collected(model, asking()) == [
                    TextPiece(text="So."),
                    ToolCall(name="read_file", arguments='{"path": "a"}', id="c1"),
                    StreamEnd(),
                ]


@every_row(
    ("event", "kind", "key"),
    [
        (
            {"type": "error", "code": "rate_limit_exceeded", "message": "slow"},
            Unavailable,
            "llm.rate_limited",
        ),
        (
            {"type": "error", "error": {"type": "server_error", "message": "x"}},
            Unavailable,
            "llm.server_error",
        ),
        (
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
            Unavailable,
            "llm.server_error",
        ),
        (
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": "No."}},
            },
            ProviderError,
            "llm.refused_request",
        ),
        ({"type": "response.created"}, Unavailable, "llm.cut_off"),
    ],
)
async def test_an_error_inside_the_stream_is_an_error(event, kind, key):
    with ModelServer([Raw(b"data: " + json.dumps(event).encode() + b"\n\n")]) as server:
        async with model_at(server) as model:
            with pytest.raises(kind) as caught:
                await collected(model, asking())
    assert (type(caught.value), caught.value.key) == (kind, key)
