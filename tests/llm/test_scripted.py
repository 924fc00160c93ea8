"""The scripted model: answers and faults from a file (K2, N)."""

import asyncio
import json
from pathlib import Path

import pytest

from duckflow.config.settings import LlmSettings
from duckflow.domain.errors import ProviderError, Unavailable, UsageError, UserError
from duckflow.domain.model import (
    ChatMessage,
    ModelRequest,
    ModelTraits,
    Retrying,
    StreamEnd,
    TextPiece,
    ToolCall,
    Usage,
)
from duckflow.i18n.catalogue import text
from duckflow.llm.local import scripted
from duckflow.llm.local.scripted import open_scripted
from duckflow.llm.retry import RetryingClient
from fakes.gate import Gate

LONG = "さあ、書きます 🦆 " * 20


@pytest.fixture
def script(tmp_path: Path):
    def write(*lines: dict | str) -> Path:
        file = tmp_path / "script.jsonl"
        file.write_text(
            "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8"
        )
        return file

    return write


async def model_of(file: Path):
    return await open_scripted(file, ModelTraits(name=f"scripted:{file}"))


def asking(output: str = "Decision", **fields) -> ModelRequest:
    return ModelRequest(output=output, messages=(ChatMessage(role="user", text="hello you"),), **fields)


async def collected(model, request) -> list:
    return [piece async for piece in model.stream(request)]


async def said(model, output: str = "Decision") -> str:
    return "".join(
        piece.text for piece in await collected(model, asking(output)) if isinstance(piece, TextPiece)
    )


async def refusal(call) -> UserError:
    with pytest.raises(UserError) as caught:
        await call
    text(caught.value.key, **caught.value.values)
    return caught.value


async def test_N_each_call_takes_the_next_unused_line_for_what_it_asks(script):
    model = await model_of(
        script(
            {"for": "Decision", "text": "first"},
            {"for": "RequirementList", "text": "listed"},
            "",
            {"text": "second"},
        )
    )
    assert [await said(model), await said(model), await said(model, "RequirementList")] == [
        "first",
        "second",
        "listed",
    ]


async def test_an_answer_is_streamed_in_pieces(script):
    pieces = await collected(await model_of(script({"text": LONG})), asking())
    assert len(pieces) > 5
    assert "".join(piece.text for piece in pieces[:-1]) == LONG
    assert isinstance(pieces[-1], StreamEnd)


async def test_usage_is_what_the_script_says_else_an_estimate(script):
    usage = {"input_tokens": 100, "cached_tokens": 50, "output_tokens": 7}
    model = await model_of(script({"text": "x" * 40, "usage": usage}, {"text": "x" * 40}))
    assert (await collected(model, asking()))[-1].usage == Usage(**usage)
    assert (await collected(model, asking()))[-1].usage == Usage(input_tokens=2, output_tokens=10)


async def test_A8_a_script_can_call_tools(script):
    model = await model_of(script({"tool_calls": [{"name": "shell__run", "arguments": '{"command": "ls"}'}]}))
    call = ToolCall(name="shell__run", arguments='{"command": "ls"}')
    pieces = await collected(model, asking())
    assert pieces[0] == call
    assert pieces[-1].stop == "end"


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (429, "llm.rate_limited"),
        (500, "llm.server_error"),
        ("timeout", "llm.timeout"),
        ("cut", "llm.cut_off"),
    ],
)
async def test_N_faults_are_those_a_provider_has(script, error, key):
    model = await model_of(script({"text": "never whole", "error": error}))
    failure = await refusal(collected(model, asking()))
    assert isinstance(failure, Unavailable)
    assert failure.key == key


async def test_a_cut_answer_is_heard_in_part(script):
    model = await model_of(script({"text": "0123456789", "error": "cut"}))
    stream = model.stream(asking())
    assert await anext(stream) == TextPiece(text="01234")
    with pytest.raises(Unavailable):
        await anext(stream)


async def test_K4_faults_are_retried_with_the_next_line_and_without_waiting(script):
    lines = script({"error": 429}, {"text": "ab", "error": "cut"}, {"text": "ok"})
    model = RetryingClient(await model_of(lines), LlmSettings())
    pieces = await collected(model, asking())
    assert [piece.wait_s for piece in pieces if isinstance(piece, Retrying)] == [0.0, 0.0]
    assert pieces[-2] == TextPiece(text="ok")


async def test_a_delay_longer_than_the_calls_time_is_a_timeout(script):
    model = await model_of(script({"text": "late", "delay_s": 60}))
    failure = await refusal(collected(model, asking(time_limit_s=0.05)))
    assert failure.key == "llm.timeout"


async def test_an_answer_waits_at_its_gate_and_says_that_it_was_asked_for(script, tmp_path):
    gate = Gate(tmp_path / "gate")
    asking_it = asyncio.ensure_future(said(await model_of(script(gate.hold("after you")))))
    assert not gate.asked()
    await gate.wait_until_asked()
    assert not asking_it.done()
    gate.open()
    assert await asking_it == "after you"


async def test_a_script_that_is_over_says_for_what(script):
    file = script({"for": "Decision", "text": "one"})
    model = await model_of(file)
    await said(model)
    failure = await refusal(said(model))
    assert isinstance(failure, ProviderError)
    assert failure.key == "llm.script_exhausted"
    assert failure.values == {"file": str(file), "output": "Decision", "count": 1}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{not json", "JSON"),
        ("[1]", "object"),
        ('{"text": "x", "colour": "red"}', "colour"),
        ('{"text": 3}', "text"),
        ('{"error": 418}', "error"),
        ('{"delay_s": -1}', "delay_s"),
        ('{"tool_calls": [{"name": "x"}]}', "tool_calls[0].arguments"),
    ],
)
async def test_a_wrong_line_is_named(script, line, problem):
    file = script({"text": "fine"}, "", line)
    failure = await refusal(model_of(file))
    assert isinstance(failure, UsageError)
    assert failure.key == "llm.script_malformed"
    assert (failure.values["file"], failure.values["line"]) == (str(file), 3)
    assert problem in str(failure.values["problem"])


async def test_a_missing_or_too_large_script_is_an_error(script, tmp_path, monkeypatch):
    assert (await refusal(model_of(tmp_path / "nothing.jsonl"))).key == "llm.script_unreadable"
    assert (await refusal(model_of(tmp_path))).key == "llm.script_unreadable"
    monkeypatch.setattr(scripted, "MAX_SCRIPT_BYTES", 10)
    assert (await refusal(model_of(script({"text": "longer than that"})))).key == "llm.script_unreadable"
