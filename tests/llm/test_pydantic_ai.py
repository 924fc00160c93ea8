"""Other providers through pydantic-ai, behind the same port (K2)."""

import asyncio
import base64
import json
import sys

import pytest

pytest.importorskip("pydantic_ai")
pytest.importorskip("google.genai")

import httpx2
from pydantic_ai import exceptions as foreign
from pydantic_ai import messages as parts
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import (
    ChatMessage,
    ModelRequest,
    ModelTraits,
    NativeTool,
    Picture,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    Thought,
    ToolCall,
)
from duckflow.i18n.catalogue import text
from duckflow.llm.endpoints import PROVIDERS, THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire import pydantic_ai
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

    def __init__(self, *items: object, thinks: bool = False) -> None:
        self.seen: list[tuple[list[parts.ModelMessage], AgentInfo]] = []
        self.closed = False
        self._items = items
        self.client = PydanticAIModel(
            FunctionModel(stream_function=self._play, profile={"supports_thinking": thinks}),
            ENDPOINT,
            ModelTraits(name="google:gemini"),
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


async def test_K4_K6_an_answer_is_streamed_and_its_thinking_beside_it():
    model = Foreign(
        {0: DeltaThinkingPart(content="hm")}, {0: DeltaThinkingPart(content=", so")}, "さあ", "、🦆"
    )
    *said, end = await model.collected()
    assert said == [
        ThinkingPiece(text="hm"),
        ThinkingPiece(text=", so"),
        TextPiece(text="さあ"),
        TextPiece(text="、🦆"),
    ]
    assert isinstance(end, StreamEnd)
    assert end.stop == "end"
    assert end.usage.input_tokens > 0
    assert end.usage.output_tokens > 0


async def test_the_request_is_passed_on():
    model = Foreign("ok", thinks=True)
    tool = NativeTool(name="shell__run", description="Run", parameters={"type": "object", "properties": {}})
    wanted = {"tools": (tool,), "max_tokens": 77, "temperature": 0.5, "effort": "high"}
    await model.collected(REQUEST.model_copy(update=wanted))
    ((_, info),) = model.seen
    assert info.model_settings is not None
    room = 77 + THINKING_ALLOWANCE
    assert info.model_settings == {"max_tokens": room, "temperature": 0.5}
    assert info.model_request_parameters.thinking == "high"
    assert [(offered.name, offered.description) for offered in info.function_tools] == [("shell__run", "Run")]


async def test_K4_K6_a_model_that_does_not_think_gets_neither_room_nor_effort_for_it():
    model = Foreign("ok")
    await model.collected(REQUEST.model_copy(update={"max_tokens": 77, "effort": "high"}))
    ((_, info),) = model.seen
    assert info.model_settings == {"max_tokens": 77}
    assert info.model_request_parameters.thinking is None


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
    assert isinstance(said[-1], ToolCall)
    assert (said[-1].name, said[-1].arguments) == ("shell__run", '{"command": "ls"}')
    assert said[-1].id
    assert end.stop == "end"


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
    monkeypatch.setitem(sys.modules, "cohere", None)
    cohere = Endpoint(provider=PROVIDERS["cohere"], model="command", key="k")
    with pytest.raises(ImportError):
        pydantic_ai.open_pydantic_ai(cohere, ModelTraits(name="cohere:command"))


def test_a_picture_goes_before_the_words_about_it():
    picture = Picture(path="a.png", media="image/png", digest="x")
    ((asked,),) = (
        turn.parts
        for turn in to_foreign([ChatMessage(role="user", text="see", pictures=(picture,))], {"x": "AAAA"})
    )
    shown, words = asked.content
    assert (shown.data, shown.media_type, words) == (b"\0\0\0", "image/png", "see")


def results(*messages: ChatMessage) -> list[tuple[str, str, str]]:
    """Name, id and outcome of each result in a prompt."""
    return [
        (part.tool_name, part.tool_call_id, part.outcome)
        for turn in to_foreign(messages, {})
        for part in turn.parts
        if isinstance(part, parts.ToolReturnPart)
    ]


def test_A8_calls_are_replayed_as_calls_and_results_under_their_ids():
    calls = (
        ToolCall(name="read", arguments='{"path": "a"}', id="c1"),
        ToolCall(name="run", arguments="{}", id="c2"),
    )
    said = ChatMessage(role="assistant", text="I look.", calls=calls)
    found = ChatMessage(role="user", text="one", result_of="c1")
    failed = ChatMessage(role="user", text="exit code 1", result_of="c2", failed=True)
    assert results(said, found, failed) == [("read", "c1", "success"), ("run", "c2", "failed")]
    _, answer, _ = to_foreign([ChatMessage(role="user", text="go"), said, found], {})
    assert [part.part_kind for part in answer.parts] == ["text", "tool-call", "tool-call"]
    assert answer.parts[1].args_as_dict() == {"path": "a"}


SIGNED = [
    {"thought": True, "text": "I look "},
    {"thought": True, "text": "first."},
    {"text": "I look."},
    {"functionCall": {"name": "read", "args": {"path": "a"}, "id": "g1"}, "thoughtSignature": "c2lnbmVk"},
    {"functionCall": {"name": "read", "args": {"path": "b"}, "id": "g2"}},
]


class Gemini:
    """Google's service, as far as it streams answers made of these parts; it keeps what it is asked."""

    def __init__(self, *answers: list[dict], reason: str = "STOP") -> None:
        self.asked: list[dict] = []
        self._answers = list(answers)
        self._reason = reason
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer), timeout=60)
        provider = GoogleProvider(api_key="k", http_client=client)
        traits = ModelTraits(name="google:gemini-3.8-flash", window=1_000_000)
        self.client = PydanticAIModel(GoogleModel("gemini-3.8-flash", provider=provider), ENDPOINT, traits)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(json.loads(request.content))
        used = {"promptTokenCount": 50, "candidatesTokenCount": 20, "thoughtsTokenCount": 70}
        counted = {**used, "cachedContentTokenCount": 30, "totalTokenCount": 140}
        events = [
            {"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in self._answers.pop(0)
        ]
        events.append({"candidates": [{"finishReason": self._reason, "index": 0}], "usageMetadata": counted})
        body = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body.encode())

    async def said(self, *messages: ChatMessage, **wanted) -> tuple[ChatMessage, StreamEnd, str]:
        """The answer as it is kept, its end, and the thinking that was shown."""
        read = {"type": "object", "properties": {"path": {"type": "string"}}}
        tools = (NativeTool(name="read", description="", parameters=read),)
        request = ModelRequest(output="Decision", messages=messages, tools=tools, **wanted)
        pieces = [piece async for piece in self.client.stream(request)]
        message = ChatMessage(
            role="assistant",
            text="".join(piece.text for piece in pieces if isinstance(piece, TextPiece)),
            calls=tuple(piece for piece in pieces if isinstance(piece, ToolCall)),
            thoughts=tuple(piece for piece in pieces if isinstance(piece, Thought)),
        )
        assert isinstance(pieces[-1], StreamEnd)
        return (
            message,
            pieces[-1],
            "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece)),
        )


ASKED = ChatMessage(role="user", text="go")


def results_of(answer: ChatMessage) -> list[ChatMessage]:
    return [ChatMessage(role="user", text="found", result_of=call.id) for call in answer.calls]


async def test_K6_signed_thinking_is_kept_and_handed_back_part_by_part():
    gemini = Gemini(SIGNED, [{"text": "Done."}], [{"text": "Done."}])
    answer, end, thinking = await gemini.said(ASKED, effort="low", max_tokens=100)
    assert (answer.text, thinking) == ("I look.", "I look first.")
    assert [(call.id, call.arguments) for call in answer.calls] == [
        ("g1", '{"path":"a"}'),
        ("g2", '{"path":"b"}'),
    ]
    assert (end.stop, end.usage.thinking_tokens, end.usage.cached_tokens) == ("end", 70, 30)
    assert end.usage.output_tokens == 90
    asked = gemini.asked[0]["generationConfig"]
    assert asked["maxOutputTokens"] == 100 + THINKING_ALLOWANCE
    assert asked["thinkingConfig"] == {"include_thoughts": True, "thinking_level": "LOW"}

    kept = ChatMessage.model_validate_json(answer.model_dump_json())
    await gemini.said(ASKED, kept, *results_of(kept))
    _, said, given = gemini.asked[1]["contents"]
    thought, text, first, second = said["parts"]
    assert (thought["text"], thought["thought"]) == ("I look first.", True)
    assert text == {"text": "I look."}
    assert base64.urlsafe_b64decode(first["thoughtSignature"]) == b"signed"
    assert (first["functionCall"]["id"], second["functionCall"]["id"]) == ("g1", "g2")
    assert [part["functionResponse"]["id"] for part in given["parts"]] == ["g1", "g2"]

    changed = kept.model_copy(update={"text": "Something else."})
    await gemini.said(ASKED, changed, *results_of(kept))
    parts_of_changed = gemini.asked[2]["contents"][1]["parts"]
    assert parts_of_changed[0] == {"text": "Something else."}
    assert b"signed" not in json.dumps(parts_of_changed).encode()


async def test_K6_thinking_of_another_model_is_not_handed_back():
    gemini = Gemini(SIGNED, [{"text": "Done."}])
    answer, *_ = await gemini.said(ASKED)
    (thought,) = answer.thoughts
    other = thought.model_copy(update={"model": "google:another"})
    changed = answer.model_copy(update={"thoughts": (other,)})
    await gemini.said(ASKED, changed, *results_of(answer))
    assert "c2lnbmVk" not in json.dumps(gemini.asked[1])


async def test_K4_an_answer_that_thinking_used_up_ends_by_its_length():
    answer, end, _ = await Gemini([], reason="MAX_TOKENS").said(ASKED)
    assert (answer.text, answer.calls, end.stop) == ("", (), "length")
