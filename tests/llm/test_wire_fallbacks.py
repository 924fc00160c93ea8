"""Fields that a compatible server refuses are left out, at once and from then on (K2, K4)."""

import json
from contextlib import asynccontextmanager

import pytest

from duckflow.domain.errors import ProviderError, ToolsUnsupported, Unavailable
from duckflow.domain.model import (
    ChatMessage,
    ModelRequest,
    ModelTraits,
    NativeTool,
    TextPiece,
    Thought,
    ToolCall,
)
from duckflow.llm.endpoints import PROVIDERS, THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.openai import OPENAI
from fakes.model_server import Answer, Fault, ModelServer, Raw
from fakes.rows import every_row

WRITE = NativeTool(name="write_file", description="Write a file", parameters={"type": "object"})
CALL = ToolCall(name="write_file", arguments="{}", id="c1")
THOUGHT = Thought(model="openai:some-model", text="Hm.", data={"field": "reasoning_content"})
HISTORY = (
    ChatMessage(role="user", text="Write."),
    ChatMessage(role="assistant", text="", calls=(CALL,), thoughts=(THOUGHT,)),
    ChatMessage(role="user", text="written", result_of="c1"),
    ChatMessage(role="user", text="Go on."),
)


def asking(**fields) -> ModelRequest:
    given = {"output": "Decision", "messages": (ChatMessage(role="user", text="hi"),), "time_limit_s": 120.0}
    return ModelRequest(**{**given, **fields})


@asynccontextmanager
async def model_at(server: ModelServer, *, small: bool = False, window: int = 200_000):
    endpoint = Endpoint(
        provider=PROVIDERS["openai"], model="some-model", address=f"{server.url}/v1", key="sk-test"
    )
    traits = ModelTraits(name="openai:some-model", small=small, window=window)
    model = WireModel(OPENAI, endpoint, traits)
    try:
        yield model
    finally:
        await model.aclose()


async def collected(model, request) -> list:
    return [piece async for piece in model.stream(request)]


def text_of(pieces) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


async def test_a_refused_schema_is_left_out_and_remembered():
    refusal = Fault(400, "This model does not support response format `json_schema`.")
    with ModelServer([refusal, Answer("{}"), Answer("{}")]) as server:
        async with model_at(server, small=True) as model:
            await collected(model, asking(answer_schema={"type": "object"}))
            await collected(model, asking(answer_schema={"type": "object"}))
        sent = ["response_format" in asked.body for asked in server.requests]
    assert sent == [True, False, False]


async def test_several_fields_are_given_up_one_after_the_other():
    refusals = [Fault(422, "extra: stream_options"), Fault(400, "Unsupported value: 'temperature'")]
    with ModelServer([*refusals, Answer("ok")]) as server:
        async with model_at(server) as model:
            assert text_of(await collected(model, asking(temperature=0.0))) == "ok"
        last = server.requests[-1].body
    assert "stream_options" not in last
    assert "temperature" not in last


async def test_tools_are_offered_without_thinking_where_both_are_refused():
    refusal = Fault(400, "Function tools with reasoning_effort are not supported here.")
    with ModelServer([refusal, Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(tools=(WRITE,)))
        assert server.requests[-1].body["reasoning_effort"] == "none"


async def test_the_same_refusal_twice_is_an_error():
    refusal = Fault(400, "temperature is wrong")
    with ModelServer([refusal, refusal]) as server:
        async with model_at(server) as model:
            with pytest.raises(ProviderError) as caught:
                await collected(model, asking(temperature=0.0))
        assert len(server.requests) == 2
    assert caught.value.values["detail"] == "temperature is wrong"


async def test_fallbacks_that_do_not_help_are_not_tried_again():
    refusal = Fault(400, "Function tools with reasoning_effort are not supported here.")
    with ModelServer([refusal, refusal, refusal]) as server:
        async with model_at(server) as model:
            with pytest.raises(ProviderError, match="reasoning_effort"):
                await collected(model, asking(tools=(WRITE,)))
        assert len(server.requests) == 3


async def test_an_answer_that_had_begun_is_not_asked_for_again():
    error = '{"code": 400, "message": "temperature"}'
    with ModelServer([Answer("half an", error=error, fault="no_end"), Answer("never heard")]) as server:
        async with model_at(server) as model:
            with pytest.raises(ProviderError, match="temperature"):
                await collected(model, asking(temperature=0.0))
        assert len(server.requests) == 1


async def test_any_other_refusal_is_not_repeated():
    with ModelServer([Fault(400, "the prompt is too long")]) as server:
        async with model_at(server, small=True) as model:
            with pytest.raises(ProviderError, match="too long"):
                await collected(model, asking(answer_schema={}, temperature=0.0))
        assert len(server.requests) == 1


async def test_fields_of_thinking_are_left_out_where_a_server_does_not_know_them():
    refusals = [
        Fault(400, '"llama3.2" does not support thinking'),
        Fault(422, "property 'reasoning_content'"),
    ]
    with ModelServer([*refusals, Answer("ok"), Answer("ok")]) as server:
        async with model_at(server) as model:
            for _ in range(2):
                await collected(model, asking(messages=HISTORY, tools=(WRITE,), effort="low"))
        bodies = [asked.body for asked in server.requests]
    assert ["reasoning_effort" in body for body in bodies] == [True, False, False, False]
    assert ["reasoning_content" in str(body) for body in bodies] == [True, True, False, False]


@every_row(
    "said",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Missing `reasoning_content` field in the assistant message at message index 3.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 3",
    ],
)
async def test_K6_an_answer_without_thinking_gets_the_empty_field_where_a_server_misses_it(said):
    """As after a call that another model made."""
    unthought = ChatMessage(role="assistant", text="", calls=(CALL,))
    messages = (*HISTORY, unthought, ChatMessage(role="user", text="written", result_of="c1"))
    request = asking(messages=messages, tools=(WRITE,), effort="low")
    with ModelServer([Fault(400, said), Answer("ok"), Answer("ok")]) as server:
        async with model_at(server) as model:
            for _ in range(2):
                await collected(model, request)
        bodies = [asked.body for asked in server.requests]
    thoughts = [
        [entry.get("reasoning_content") for entry in body["messages"] if entry["role"] == "assistant"]
        for body in bodies
    ]
    assert thoughts == [["Hm.", None], ["Hm.", ""], ["Hm.", ""]]
    assert all(body["reasoning_effort"] == "low" for body in bodies)


async def test_a_word_after_results_goes_into_the_last_of_them_where_it_may_not_follow():
    """Mistral's models refuse it, on their own server and on others."""
    with ModelServer([Fault(400, "Unexpected role 'user' after role 'tool'"), Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(messages=HISTORY, tools=(WRITE,)))
        roles = [[entry["role"] for entry in asked.body["messages"]] for asked in server.requests]
        assert server.requests[-1].body["messages"][-1]["content"] == "written\n\nGo on."
    assert roles == [["user", "assistant", "tool", "user"], ["user", "assistant", "tool"]]


async def test_no_content_beside_calls_is_sent_as_empty_text_where_null_is_refused():
    refusal = Fault(400, "messages.1.content: Input should be a valid string")
    with ModelServer([refusal, Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(messages=HISTORY, tools=(WRITE,)))
        assert [asked.body["messages"][1]["content"] for asked in server.requests] == [None, ""]


CONTEXT = "This model's maximum context length is 40000 tokens. However, you requested"
LIMITS = [
    ("max_tokens is too large: 31808. This model supports at most 16384 completion tokens", 16384, True),
    (
        "`max_tokens` must be less than or equal to `8192`, which is less than the `context_window`",
        8192,
        True,
    ),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", 4096, True),
    ("max_tokens: 31808 > 20,000, which is the maximum allowed number of output tokens", 20000, True),
    (f"{CONTEXT} 61808 tokens (30000 in the messages, 31808 in the completion).", 10000, False),
    (
        "'max_tokens' is too large: 31808. The maximum context length is 32768 tokens and your request has "
        "20000 input tokens (31808 > 32768 - 20000)",
        11808,
        False,
    ),
    (
        f"{CONTEXT} 31808 output tokens and your prompt contains at least 8193 input tokens, for a total of "
        "at least 40001 tokens.",
        15904,
        False,
    ),
    ("input length and `max_tokens` exceed context limit: 30000 + 31808 > 40000", 10000, False),
]


@every_row(("said", "then", "lasting"), LIMITS)
async def test_K4_the_room_for_thinking_shrinks_to_what_the_server_allows(said, then, lasting):
    with ModelServer([Fault(400, said), Answer("ok"), Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(max_tokens=8000))
            await collected(model, asking(max_tokens=8000))
        sent = [asked.body["max_tokens"] for asked in server.requests]
    assert sent == [31808, then, then if lasting else 31808]


async def test_a_prompt_that_is_too_long_by_itself_is_not_asked_again_with_less_room():
    said = f"{CONTEXT} 144754 tokens (112946 in the messages, 31808 in the completion)."
    with ModelServer([Fault(400, said)]) as server:
        async with model_at(server) as model:
            with pytest.raises(ProviderError):
                await collected(model, asking(max_tokens=8000))
        assert len(server.requests) == 1


async def test_K7_a_window_that_a_refusal_tells_bounds_the_room_from_then_on():
    long = ChatMessage(role="user", text="word " * 12_000)
    said = f"{CONTEXT} 43808 tokens (12000 in the messages, 31808 in the completion)."
    with ModelServer([Fault(400, said), Answer("ok"), Answer("ok")]) as server:
        async with model_at(server) as model:
            for _ in range(2):
                await collected(model, asking(messages=(long,), max_tokens=8000))
        sent = [asked.body["max_tokens"] for asked in server.requests]
    assert sent[:2] == [31808, 28000]
    assert 8000 < sent[2] < 28000


async def test_another_name_for_the_longest_answer_is_taken_up():
    said = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    with ModelServer([Fault(400, said), Answer("ok")]) as server:
        async with model_at(server) as model:
            await collected(model, asking(max_tokens=1000))
        assert server.requests[-1].body["max_completion_tokens"] == 1000 + THINKING_ALLOWANCE
        assert "max_tokens" not in server.requests[-1].body


@every_row(
    ("status", "said"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "registry.ollama.ai/library/gemma3:latest does not support tools"),
        (500, "tools param requires --jinja flag"),
        (500, "Unsupported param: tools"),
        (404, "No endpoints found that support tool use. To learn more, visit: https://example.org"),
        (400, "`tool calling` is not supported with this model"),
        (400, "Function calling is not enabled for this model"),
    ],
)
async def test_A8_a_server_that_takes_no_tools_says_so_once(status, said):
    with ModelServer([Fault(status, said)]) as server:
        async with model_at(server) as model:
            with pytest.raises(ToolsUnsupported) as caught:
                await collected(model, asking(tools=(WRITE,)))
        assert len(server.requests) == 1
    assert caught.value.values["model"] == "openai:some-model"


@every_row(
    ("status", "said"),
    [
        (429, "Too many function calls. This tier does not support more."),
        (400, "Invalid schema for function 'x': 'type' is missing"),
        (503, "The service is not available"),
    ],
)
async def test_other_refusals_are_no_word_against_tools(status, said):
    with ModelServer([Fault(status, said)]) as server:
        async with model_at(server) as model:
            with pytest.raises(ProviderError) as caught:
                await collected(model, asking(tools=(WRITE,)))
    assert not isinstance(caught.value, ToolsUnsupported)


async def test_a_call_that_the_provider_itself_found_wrong_is_worth_another_try():
    """Groq checks calls against their schema, and answers a wrong one with a refusal."""
    said = {"error": {"message": "Tool call validation failed", "code": "tool_use_failed"}}
    with ModelServer([Raw(json.dumps(said).encode(), "application/json", 400)]) as server:
        async with model_at(server) as model:
            with pytest.raises(Unavailable):
                await collected(model, asking(tools=(WRITE,)))


async def test_a_relay_shows_what_the_provider_behind_it_said_and_it_counts():
    raw = {"message": "Unexpected role 'user' after role 'tool'", "code": "3230"}
    said = {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(raw)}}}
    refusal = Raw(json.dumps(said).encode(), "application/json", 400)
    with ModelServer([refusal, Answer("ok")]) as server:
        async with model_at(server) as model:
            assert text_of(await collected(model, asking(messages=HISTORY, tools=(WRITE,)))) == "ok"
