"""K4: an answer cut by its length is reported as such and continued; thinking never takes its place."""

import json
from typing import Any

import pytest

from duckflow.config.settings import LlmSettings
from duckflow.domain.decision import Decision
from duckflow.domain.errors import BadAnswer, ProviderError
from duckflow.domain.live_updates import LiveUpdate, ReplyPiece, ReplyVoid, ThinkingShown, Waiting
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
from duckflow.i18n.catalogue import text
from duckflow.llm.answers.continuing import CALL_AGAIN, CONTINUE, MORE_ROOM, collect_whole, join_parts
from duckflow.llm.answers.response import CollectedResponse
from duckflow.llm.answers.structured import ask
from duckflow.llm.retry import RetryingClient
from fakes.model import ONE_CALL, FakeModel, said
from fakes.rows import every_row

LARGE = ModelTraits(name="m", window=200_000)
GOOD = json.dumps({"next_step": "done", "reply": "One two three four five six seven."})
REQUEST = ModelRequest(output="Decision", messages=(ChatMessage(role="user", text="Say hi."),), effort="high")
NATIVE = REQUEST.model_copy(update={"tools": (NativeTool(name="shell", description="", parameters={}),)})
THOUGHT_ONLY = [
    ThinkingPiece(text="Hmm, "),
    ThinkingPiece(text="let me see"),
    Thought(model="m", text="Hmm, let me see"),
    StreamEnd(stop="length", usage=ONE_CALL),
]


async def decide(*turns, request: ModelRequest = REQUEST, traits: ModelTraits = LARGE):
    shown: list = []
    model = FakeModel(*turns, traits=traits)
    return await ask(model, request, Decision, shown.append), model, shown


def notes(shown: list) -> list[str]:
    return [text(one.reason) for one in shown if isinstance(one, Waiting)]


@every_row(
    "turn",
    [
        THOUGHT_ONLY,
        [StreamEnd(stop="length", usage=ONE_CALL)],
        said(" \n", stop="length"),
        said("<think>and so on and so", stop="length"),
    ],
)
async def test_K4_an_answer_that_was_all_thinking_is_asked_for_again_with_more_room_and_less_effort(turn):
    answer, model, shown = await decide(turn, GOOD)
    assert answer.value.reply.startswith("One two")
    first, second = model.requests
    assert (first.extra_tokens, first.effort) == (0, "high")
    assert (second.extra_tokens, second.effort) == (MORE_ROOM, "low")
    assert second.messages == first.messages
    assert notes(shown) == ["The model used its whole answer for thinking; asking again with more room."]
    assert answer.usage == ONE_CALL + ONE_CALL


async def test_K4_a_model_that_only_thinks_is_given_up_with_a_sentence_that_helps():
    with pytest.raises(BadAnswer) as caught:
        await decide(THOUGHT_ONLY, THOUGHT_ONLY, THOUGHT_ONLY, GOOD)
    assert "/effort low" in text(caught.value.key, **caught.value.values)
    assert caught.value.usage == ONE_CALL + ONE_CALL + ONE_CALL


@every_row("cut", range(1, len(GOOD)))
async def test_K4_an_answer_that_was_cut_is_continued_wherever_that_was(cut):
    answer, model, shown = await decide(said(GOOD[:cut], stop="length"), said(GOOD[cut:]))
    assert answer.text == GOOD
    assert (len(model.requests), answer.usage) == (2, ONE_CALL + ONE_CALL)
    *before, partly, wanted = model.requests[1].messages
    assert (*before,) == REQUEST.messages
    assert (partly.role, partly.text) == ("assistant", GOOD[:cut])
    assert (wanted.role, wanted.text) == ("user", CONTINUE)
    assert notes(shown) == ["The answer was cut at its length; asking for the rest."]
    assert ReplyVoid() not in shown
    assert "".join(one.text for one in shown if isinstance(one, ReplyPiece)) == answer.value.reply


async def test_K4_a_long_answer_is_continued_twice_and_then_asked_for_in_short():
    parts = [said(GOOD[at : at + 10], stop="length") for at in (0, 10, 20)]
    _, model, _ = await decide(*parts, GOOD)
    assert len(model.requests) == 4
    assert [request.extra_tokens for request in model.requests[:3]] == [0, 4096, 3 * 4096]
    assert "say it shorter" in model.requests[3].messages[-1].text


async def collected(*turns: Any) -> tuple[CollectedResponse, FakeModel, list[LiveUpdate]]:
    """Return the response of a model with native tools."""
    model, shown = FakeModel(*turns), list[LiveUpdate]()
    whole = await collect_whole(
        model, NATIVE, shown.append, Usage(), has_reply=True, is_usable=lambda _: False
    )
    return whole, model, shown


async def test_K4_plain_text_of_a_native_answer_goes_on_where_it_stopped():
    rest = [TextPiece(text="in the file."), StreamEnd(usage=ONE_CALL)]
    answer, model, shown = await collected(said("The bug is ", stop="length"), rest)
    assert answer.text == "The bug is in the file."
    assert model.requests[1].messages[-1].text == CONTINUE + CALL_AGAIN
    assert ReplyVoid() not in shown


async def test_K4_a_call_that_was_cut_is_made_again_with_more_room():
    call = ToolCall(name="shell", arguments='{"command": "ls"}', id="c2")
    thought = Thought(model="m", text="I write it again.")
    rest = [thought, call, StreamEnd(usage=ONE_CALL)]
    answer, model, _ = await collected(said("I write the file. ", stop="length"), rest)
    assert answer.calls == [call]
    assert model.requests[1].extra_tokens == NATIVE.max_tokens

    one = [ToolCall(name="shell", arguments="{}", id="c1"), StreamEnd(stop="length", usage=ONE_CALL)]
    answer, model, shown = await collected(one, rest)
    assert answer.calls == [call]
    assert model.requests[1].messages == NATIVE.messages
    assert notes(shown) == ["The answer was cut at its length; asking again with more room."]


async def test_K4_an_answer_that_is_begun_again_replaces_the_one_that_was_cut():
    other = GOOD.replace("three", "3")
    answer, _, shown = await decide(said(GOOD[:-10], stop="length"), other)
    assert answer.text == other
    last = [place for place, one in enumerate(shown) if isinstance(one, ReplyVoid)][-1]
    assert "".join(one.text for one in shown[last:] if isinstance(one, ReplyPiece)) == answer.value.reply


async def test_K4_more_room_than_the_provider_has_leads_to_a_shorter_answer():
    refused = [ProviderError("llm.refused_request", provider="p", status=400, detail="max_tokens too large")]
    _, model, _ = await decide(said(GOOD[:30], stop="length"), refused, GOOD)
    assert len(model.requests) == 3
    assert "say it shorter" in model.requests[2].messages[-1].text


async def test_K4_a_small_model_is_not_made_to_go_on_in_the_middle():
    small = ModelTraits(name="s", small=True)
    _, model, shown = await decide(said(GOOD[:30], stop="length"), GOOD, traits=small)
    assert "say it shorter" in model.requests[1].messages[-1].text
    assert notes(shown) == []


async def test_K4_more_room_comes_on_top_of_the_longest_answer_and_fits_the_window():
    model = FakeModel(THOUGHT_ONLY, GOOD, traits=ModelTraits(name="m", window=20_000))
    client = RetryingClient(model, LlmSettings(max_tokens=1_000))
    await ask(client, REQUEST, Decision, lambda _: None)
    assert [request.max_tokens for request in model.requests] == [1_000, 1_000 + 5_000]


async def test_K6_thinking_is_shown_in_every_round():
    _, _, shown = await decide(THOUGHT_ONLY, [ThinkingPiece(text="Again."), *said(GOOD)])
    assert [one.text for one in shown if isinstance(one, ThinkingShown)] == ["Hmm, ", "let me see", "Again."]


@every_row(
    ("first", "rest", "whole"),
    [
        ("abc", "def", "abcdef"),
        ("return fo", "o(bar)", "return foo(bar)"),
        ("x = 1\nreturn fo", "return foo(bar)", "x = 1\nreturn foo(bar)"),
        ('{"reply": "one two', 'one two three"}', '{"reply": "one two three"}'),
        ('{"reply": "one two ', '```json\nthree"}', '{"reply": "one two three"}'),
        ('{"reply": "one two ', '```json\nne two three"}', '{"reply": "one two three"}'),
        ("Text.\n", "```python\nx\n```", "Text.\n```python\nx\n```"),
        ("    \n    ", "    x", "    \n        x"),
        ("=" * 30, "=" * 30, "=" * 60),
        ("a\nfor x in y:\n", "for x in y:\n    pass", "a\nfor x in y:\n    pass"),
        ("", "all", "all"),
        ("all", "", "all"),
        (GOOD[:60], GOOD, GOOD),
        (GOOD[:60], f"\n{GOOD}", f"\n{GOOD}"),
    ],
)
def test_K4_two_parts_are_joined_without_what_stands_twice(first, rest, whole):
    assert join_parts(first, rest) == whole
