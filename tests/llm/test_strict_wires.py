"""Conversations with providers that check the protocol (A8, K2, K6)."""

from collections.abc import Sequence
from contextlib import asynccontextmanager

from duckflow.domain.errors import ProviderError
from duckflow.domain.frozen import replace
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
from duckflow.llm.endpoints import PROVIDERS, Endpoint
from duckflow.llm.wire.anthropic import ANTHROPIC
from duckflow.llm.wire.client import WireModel
from duckflow.llm.wire.openai import OPENAI
from duckflow.llm.wire.responses import RESPONSES
from fakes.model_server import Answer
from fakes.rows import every_row
from fakes.strict_server import StrictServer

WIRES = {
    "openai": (OPENAI, "/v1", "deepseek-chat"),
    "anthropic": (ANTHROPIC, "", "claude-sonnet-5-5"),
    "responses": (RESPONSES, "/v1", "gpt-6.1-terra"),
}
READ = NativeTool(name="read_file", description="Read", parameters={"type": "object", "properties": {}})
SYSTEM = ChatMessage(role="system", text="Be brief.", stable=True)
TAIL = ChatMessage(role="user", text="Steps left: many.")


@asynccontextmanager
async def model_at(server: StrictServer, provider: str, name: str = ""):
    wire, path, usual = WIRES[provider]
    endpoint = Endpoint(
        provider=PROVIDERS[provider], model=name or usual, address=server.url + path, key="sk"
    )
    model = WireModel(wire, endpoint, ModelTraits(name=endpoint.name, window=200_000))
    try:
        yield model
    finally:
        await model.aclose()


def asking(messages: Sequence[ChatMessage], **fields) -> ModelRequest:
    given = {
        "output": "Decision",
        "tools": (READ,),
        "effort": "medium",
        "cache_key": "s1",
        "time_limit_s": 120.0,
    }
    return ModelRequest(messages=tuple(messages), **{**given, **fields})


def kept(pieces: Sequence[object]) -> ChatMessage:
    """An answer, as the next prompt repeats it."""
    return ChatMessage(
        role="assistant",
        text="".join(piece.text for piece in pieces if isinstance(piece, TextPiece)),
        calls=tuple(piece for piece in pieces if isinstance(piece, ToolCall)),
        thoughts=tuple(piece for piece in pieces if isinstance(piece, Thought)),
    )


def results(answer: ChatMessage) -> list[ChatMessage]:
    """A result for each call, the first of several a failure."""
    return [
        ChatMessage(role="user", text=f"line {call.id}", result_of=call.id, failed=place == 1, stable=True)
        for place, call in enumerate(answer.calls)
    ]


async def turn(model: WireModel, said: list[ChatMessage], **fields) -> list[object]:
    """Ask once more and add the answer and its results to what was said."""
    pieces = [piece async for piece in model.stream(asking([*said, TAIL], **fields))]
    answer = kept(pieces)
    said += [answer, *results(answer)]
    return pieces


def calling(place: int) -> Answer:
    """An answer with one, two or three calls, some of them beside text."""
    calls = (("read_file", f'{{"path":  "{place}.py"}}'), ("read_file", ""), ("read_file", '{"path": "あ"}'))
    return Answer("" if place % 2 else f"I read {place}.", calls=calls[: 1 + place % 3])


@every_row("provider", WIRES)
async def test_A8_ten_loops_with_parallel_calls_pass_every_check_of_the_provider(provider):
    with StrictServer([*(calling(place) for place in range(10)), Answer("Done.")]) as server:
        async with model_at(server, provider) as model:
            said = [SYSTEM, ChatMessage(role="user", text="Read all.", stable=True)]
            for _ in range(10):
                pieces = await turn(model, said)
                assert any(isinstance(piece, ThinkingPiece) for piece in pieces)
            last = await turn(model, said)
        assert server.refusals == []
        assert last[-1] == StreamEnd(usage=last[-1].usage)
        assert len(server.requests) == 11


@every_row("provider", WIRES)
async def test_K6_the_next_request_and_another_model_get_no_old_thinking(provider):
    answers = [calling(2), Answer("Done."), calling(3), Answer("Yes."), Answer("Me too.")]
    with StrictServer(answers) as server:
        said = [SYSTEM, ChatMessage(role="user", text="Read all.", stable=True)]
        async with model_at(server, provider) as model:
            await turn(model, said)
            await turn(model, said)
            said = [replace(message, thoughts=()) for message in said]
            said.append(ChatMessage(role="user", text="Sure?", stable=True))
            await turn(model, said)
        async with model_at(server, provider, WIRES[provider][2] + "-b") as other:
            await turn(other, said)
            await turn(other, said)
        assert server.refusals == []


@every_row("provider", WIRES)
async def test_A8_a_question_without_tools_shows_calls_and_results_as_text(provider):
    with StrictServer([calling(0), Answer("A title.")]) as server:
        async with model_at(server, provider) as model:
            said = [SYSTEM, ChatMessage(role="user", text="Read all.")]
            await turn(model, said)
            await turn(model, said, tools=())
        assert server.refusals == []
        shown = str(server.requests[-1].body)
    assert '[called read_file({"path":  "0.py"})]' in shown.replace("\\\\", "")
    assert "[result of read_file]" in shown


@every_row("provider", WIRES)
async def test_A8_calls_that_no_provider_would_take_back_are_mended(provider):
    """Another server gave the same id twice, a name with a dot, arguments cut in the middle."""
    odd = ToolCall(name="functions.read", arguments='{"path": "a', id="functions.read:0")
    said = [SYSTEM]
    for text in ("one", "two"):
        answer = ChatMessage(role="assistant", text="", calls=(odd, replace(odd, id="x" * 90)))
        said += [ChatMessage(role="user", text=text), answer, *results(answer)]
    with StrictServer([Answer("ok")]) as server:
        async with model_at(server, provider) as model:
            await turn(model, said)
        assert server.refusals == []
        assert "unreadable" in str(server.requests[-1].body)


@every_row("provider", WIRES)
async def test_A8_pictures_of_a_result_are_shown(provider):
    said = [SYSTEM, ChatMessage(role="user", text="Look.")]
    picture = Picture(path="duck.png", media="image/png", digest="d")
    with StrictServer([calling(1), Answer("A duck.")]) as server:
        async with model_at(server, provider) as model:
            await turn(model, said)
            said[-1] = replace(said[-1], pictures=(picture,))
            await turn(model, said, picture_data={"d": "aGk="})
        assert server.refusals == []
        assert "aGk=" in str(server.requests[-1].body)


@every_row("provider", WIRES)
async def test_the_server_refuses_what_the_real_ones_refuse(provider):
    """The other tests prove something only if this server notices."""
    for spoil in (
        lambda said: said.pop(),  # a result is missing
        lambda said: said.append(said[-1]),  # a result comes twice
        lambda said: said.insert(-2, ChatMessage(role="user", text="Wait.")),  # something between
        lambda said: said.__setitem__(2, replace(said[2], thoughts=())),  # the thinking is missing
        lambda said: said.__setitem__(2, replace(said[2], calls=said[2].calls[:1])),
        _reword,
    ):
        with StrictServer([calling(1), Answer("never")]) as server:
            async with model_at(server, provider) as model:
                said = [SYSTEM, ChatMessage(role="user", text="Read all.")]
                await turn(model, said)
                spoil(said)
                refused = False
                try:
                    await turn(model, said)
                except ProviderError:
                    refused = True
                assert refused or server.refusals, spoil


def _reword(said: list[ChatMessage]) -> None:
    """Change what was thought."""
    thoughts = []
    for thought in said[2].thoughts:
        data = {**thought.data}
        if "summary" in data:
            data["summary"] = [{"type": "summary_text", "text": "other"}]
        thoughts.append(replace(thought, text="other", data=data))
    said[2] = replace(said[2], thoughts=tuple(thoughts))


async def test_K4_thinking_that_takes_all_the_room_ends_with_length():
    for provider in WIRES:
        with StrictServer([Answer("", stop="length")]) as server:
            async with model_at(server, provider) as model:
                pieces = await turn(model, [SYSTEM, ChatMessage(role="user", text="Think.")])
        assert pieces[-1].stop == "length", provider
        assert not any(isinstance(piece, TextPiece | ToolCall) for piece in pieces), provider
