"""Other providers through pydantic-ai, behind the same port (K2)."""

import asyncio

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import exceptions as foreign
from pydantic_ai import messages as parts
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import (
    ChatMessage,
    ModelRequest,
    ModelTraits,
    NativeTool,
    Picture,
    StreamEnd,
    TextPiece,
    ToolCall,
)
from duckflow.i18n.catalogue import text
from duckflow.llm.wire import pydantic_ai
from duckflow.llm.wire.endpoints import PROVIDERS, THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.pydantic_ai import PydanticAIModel, to_foreign
from fakes.rows import every_row

ENDPOINT = Endpoint(provider=PROVIDERS["google"], model="gemini", key="k")
REQUEST = ModelRequest(
    output="Decision",
    messages=(ChatMessage(role="system", text="rules"), ChatMessage(role="user", text="hi")),
    time_limit_s=120.0,
)


class Foreign:
    """A pydantic-ai model that plays items: pieces, errors to raise, or a pause."""

    def __init__(self, *items: object) -> None:
        self.seen: list[tuple[list[parts.ModelMessage], AgentInfo]] = []
        self.closed = False
        self._items = items
        self.client = PydanticAIModel(
            FunctionModel(stream_function=self._play), ENDPOINT, ModelTraits(name="google:gemini")
        )

    async def _play(self, messages, info):
        self.seen.append((messages, info))
        try:
            for item in self._items:
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, float):
                    await asyncio.sleep(item)
                else:
                    yield item
        finally:
            self.closed = True

    async def collected(self, request: ModelRequest = REQUEST) -> list:
        return [piece async for piece in self.client.stream(request)]


async def test_K4_an_answer_is_streamed_without_its_thinking():
    model = Foreign({0: DeltaThinkingPart(content="hm")}, "さあ", "、🦆")
    *said, end = await model.collected()
    assert said == [TextPiece(text="さあ"), TextPiece(text="、🦆")]
    assert isinstance(end, StreamEnd)
    assert end.stop == "end"
    assert end.usage.input_tokens > 0
    assert end.usage.output_tokens > 0


async def test_the_request_is_passed_on():
    model = Foreign("ok")
    tool = NativeTool(name="shell__run", description="Run", parameters={"type": "object", "properties": {}})
    await model.collected(REQUEST.model_copy(update={"tools": (tool,), "max_tokens": 77, "temperature": 0.5}))
    ((_, info),) = model.seen
    assert info.model_settings == {"max_tokens": 77 + THINKING_ALLOWANCE, "temperature": 0.5}
    assert [(offered.name, offered.description) for offered in info.function_tools] == [("shell__run", "Run")]


def test_turns_keep_their_order_and_role():
    said = [("system", "s"), ("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d")]
    turns = to_foreign((ChatMessage(role=role, text=words) for role, words in said), {})
    assert [turn.kind for turn in turns] == ["request", "response", "request"]
    assert [part.content for part in turns[0].parts] == ["s", "a", "b"]


async def test_A8_tool_calls_come_whole():
    calls = [
        {0: DeltaToolCall(name="shell__run", json_args='{"comm')},
        {0: DeltaToolCall(json_args='and": "ls"}')},
    ]
    *said, end = await Foreign("I run.", *calls).collected()
    assert said[-1] == ToolCall(name="shell__run", arguments='{"command": "ls"}')
    assert end.stop == "tool_calls"


def http_error(status: int, **fields) -> foreign.ModelHTTPError:
    return foreign.ModelHTTPError(status, "gemini", {"error": {"message": "so it is"}}, **fields)


@every_row(
    ("error", "kind", "key"),
    [
        (http_error(401), ProviderError, "llm.wrong_key"),
        (http_error(404), ProviderError, "llm.unknown_model"),
        (http_error(400), ProviderError, "llm.refused_request"),
        (http_error(429), Unavailable, "llm.rate_limited"),
        (http_error(503), Unavailable, "llm.server_error"),
        (foreign.ModelTimeoutError("m", "slow"), Unavailable, "llm.timeout"),
        (foreign.ModelConnectionError("m", "gone", phase="connect"), Unavailable, "llm.unreachable"),
        (foreign.ModelConnectionError("m", "gone", phase="read"), Unavailable, "llm.cut_off"),
        (foreign.ModelOverloadedError("m", "busy"), Unavailable, "llm.server_error"),
        (foreign.ModelQuotaExceededError("m", "broke"), ProviderError, "llm.no_credit"),
        (foreign.ModelAuthenticationError("m", "who?"), ProviderError, "llm.wrong_key"),
        (foreign.UserError("you"), ProviderError, "llm.provider_fault"),
        (KeyError("a fault of theirs"), ProviderError, "llm.provider_fault"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_K4_every_foreign_error_becomes_ours(error, kind, key):
    for model in (Foreign(error), Foreign("half", error)):
        with pytest.raises(ProviderError) as caught:
            await model.collected()
        assert (type(caught.value), caught.value.key) == (kind, key)
        text(caught.value.key, **caught.value.values)


async def test_K4_a_wish_to_wait_is_passed_on():
    with pytest.raises(Unavailable) as caught:
        await Foreign(http_error(429, headers={"Retry-After": "9"})).collected()
    assert caught.value.retry_after_s == 9.0


async def test_a_filtered_answer_is_a_refusal():
    assert (await Foreign("half", foreign.ContentFilterError("no")).collected())[-1].stop == "refusal"


async def test_K4_a_stalled_stream_ends_with_the_calls_time():
    model = Foreign("half", 60.0)
    with pytest.raises(Unavailable) as caught:
        await model.collected(REQUEST.model_copy(update={"time_limit_s": 0.2}))
    assert caught.value.key == "llm.timeout"
    assert model.closed


async def test_closing_the_iterator_stops_the_model():
    model = Foreign("one", "two", 60.0)
    stream = model.client.stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert model.closed


async def test_closing_the_client_leaves_nothing_open():
    left: list[str] = []

    class Watched(FunctionModel):
        async def __aexit__(self, *error):
            left.append("closed")

    async def say(messages, info):
        yield "ok"

    client = PydanticAIModel(Watched(stream_function=say), ENDPOINT, ModelTraits(name="google:gemini"))
    await client.aclose()
    assert left == ["closed"]


async def test_an_answer_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(pydantic_ai, "MAX_ANSWER_BYTES", 100)
    with pytest.raises(ProviderError) as caught:
        await Foreign(*["x" * 30] * 10).collected()
    assert caught.value.key == "llm.too_large"


def test_a_model_whose_library_is_missing_is_an_import_error_the_opener_explains(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "google.genai", None)
    with pytest.raises(ImportError):
        pydantic_ai.open_pydantic_ai(ENDPOINT, ModelTraits(name="google:gemini"))


def test_a_picture_goes_before_the_words_about_it():
    picture = Picture(path="a.png", media="image/png", digest="x")
    ((asked,),) = (
        turn.parts
        for turn in to_foreign([ChatMessage(role="user", text="see", pictures=(picture,))], {"x": "AAAA"})
    )
    shown, words = asked.content
    assert (shown.data, shown.media_type, words) == (b"\0\0\0", "image/png", "see")
