"""Thinking and cache counts in answers as the providers send them, and thinking handed back (K4, K6)."""

import json

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
from duckflow.llm.wire.anthropic import ANTHROPIC
from duckflow.llm.wire.client import WireFormat
from duckflow.llm.wire.openai import OPENAI
from duckflow.llm.wire.responses import RESPONSES
from fakes.rows import every_row

NAME = "any:model"
TOOL = NativeTool(name="look", description="Look", parameters={"type": "object"})
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def read(wire: WireFormat, *events: dict) -> list:
    """The pieces of an answer."""
    answer = wire.response(NAME)
    pieces = [piece for event in events for piece in answer.add(json.dumps(event))]
    return [*pieces, *answer.rest()]


def handed_back(wire: WireFormat, provider: str, pieces: list, model: str = "model") -> dict:
    """The body of the next request."""
    answer = ChatMessage(
        role="assistant",
        text="".join(piece.text for piece in pieces if isinstance(piece, TextPiece)),
        calls=tuple(piece for piece in pieces if isinstance(piece, ToolCall)),
        thoughts=tuple(piece for piece in pieces if isinstance(piece, Thought)),
    )
    results = [ChatMessage(role="user", text="seen", result_of=call.id) for call in answer.calls]
    request = ModelRequest(
        output="Decision",
        messages=(ChatMessage(role="user", text="Look."), answer, *results),
        tools=(TOOL,),
    )
    endpoint = Endpoint(provider=PROVIDERS[provider], model=model, address="http://127.0.0.1:1")
    return wire.body(endpoint, ModelTraits(name=NAME), request)


def shown(pieces: list) -> tuple[str, str]:
    """Thinking and text."""
    return tuple(
        "".join(piece.text for piece in pieces if isinstance(piece, kind))
        for kind in (ThinkingPiece, TextPiece)
    )


def chunks(*deltas: dict) -> list[dict]:
    events = [{"choices": [{"delta": delta}]} for delta in deltas]
    return [*events, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]


CHAT = [
    (
        "DeepSeek, Kimi, GLM, Qwen, vLLM, llama.cpp",
        [{"reasoning_content": "Let me"}, {"reasoning_content": " see."}, {"content": "So."}],
        {"reasoning_content": "Let me see."},
    ),
    (
        "Groq, Ollama, newer vLLM",
        [{"reasoning": "Let me", "channel": "analysis"}, {"reasoning": " see."}, {"content": "So."}],
        {"reasoning": "Let me see."},
    ),
    (
        "OpenRouter with Claude",
        [
            {"reasoning": None, "reasoning_details": [{"type": "reasoning.text", "text": "", "index": 0}]},
            {
                "reasoning": "Let me",
                "reasoning_details": [{"type": "reasoning.text", "text": "Let me", "index": 0}],
            },
            {
                "reasoning": " see.",
                "reasoning_details": [{"type": "reasoning.text", "text": " see.", "index": 0}],
            },
            {
                "reasoning_details": [
                    {"type": "reasoning.text", "signature": "sig", "index": 0, "format": "c"}
                ]
            },
            {"content": "So.", "reasoning_details": []},
        ],
        {
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "Let me see.",
                    "index": 0,
                    "signature": "sig",
                    "format": "c",
                }
            ]
        },
    ),
    (
        "OpenRouter with GPT",
        [
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "Let me see.", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "gAA", "id": "rs_1", "index": 0}]},
            {"content": "So."},
        ],
        {
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "Let me see.", "index": 0},
                {"type": "reasoning.encrypted", "data": "gAA", "id": "rs_1", "index": 0},
            ]
        },
    ),
    (
        "Magistral",
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]}]},
            {"content": [{"type": "text", "text": "So."}]},
        ],
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]},
                {"type": "text", "text": "So."},
            ]
        },
    ),
]


@every_row(("server", "deltas", "back"), CHAT)
def test_K6_thinking_is_shown_and_handed_back_in_the_field_it_came_in(server, deltas, back):
    pieces = read(OPENAI, *chunks(*deltas, {"tool_calls": [{"index": 0, **CALL}]}))
    assert shown(pieces) == ("Let me see.", "So."), server
    sent = handed_back(OPENAI, "openrouter", pieces)["messages"][1]
    assert sent == {"role": "assistant", "content": "So.", "tool_calls": [CALL], **back}


def test_K6_no_other_model_is_shown_the_thinking():
    pieces = read(OPENAI, *chunks({"reasoning_content": "Hm."}, {"content": "So."}))
    others = [
        piece.model_copy(update={"model": "any:other"}) if isinstance(piece, Thought) else piece
        for piece in pieces
    ]
    for wire, provider in ((OPENAI, "openai"), (ANTHROPIC, "anthropic"), (RESPONSES, "responses")):
        assert "Hm." not in json.dumps(handed_back(wire, provider, others))


def test_K6_the_signature_of_a_call_goes_back_with_the_call():
    """Google's own server for this wire."""
    extra = {"google": {"thought_signature": "AVS"}}
    pieces = read(
        OPENAI, *chunks({"content": "So."}, {"tool_calls": [{"index": 0, **CALL, "extra_content": extra}]})
    )
    assert handed_back(OPENAI, "openai", pieces)["messages"][1]["tool_calls"] == [
        {**CALL, "extra_content": extra}
    ]


def test_K6_thinking_goes_back_before_the_text_even_if_its_end_came_after_it():
    thought = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    said = {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "So."}]}
    pieces = read(
        RESPONSES,
        {"type": "response.output_text.delta", "output_index": 1, "delta": "So."},
        {"type": "response.output_item.done", "output_index": 1, "item": said},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.completed", "response": {"status": "completed", "output": [thought, said]}},
    )
    sent = handed_back(RESPONSES, "responses", pieces)["input"]
    assert [item.get("id") for item in sent] == [None, "r1", "m1"]


def anthropic(*blocks: tuple[dict, list[dict]], stop: str = "tool_use") -> list[dict]:
    events: list[dict] = [{"type": "message_start", "message": {"usage": {"input_tokens": 3}}}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}}
    return [
        *events,
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": end},
        {"type": "message_stop"},
    ]


THINKING = (
    {"type": "thinking", "thinking": "", "signature": ""},
    [
        {"type": "thinking_delta", "thinking": "Let me"},
        {"type": "thinking_delta", "thinking": " see."},
        {"type": "signature_delta", "signature": "sig=="},
    ],
)
SAID = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "So."}])
USE = (
    {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    [{"type": "input_json_delta", "partial_json": "{}"}],
)
HIDDEN = ({"type": "redacted_thinking", "data": "xyz"}, [])
OMITTED = (
    {"type": "thinking", "thinking": "", "signature": ""},
    [{"type": "signature_delta", "signature": "sig2"}],
)


def test_K6_anthropics_thinking_goes_back_word_for_word_and_in_place():
    pieces = read(ANTHROPIC, *anthropic(THINKING, SAID, HIDDEN, OMITTED, USE))
    assert shown(pieces) == ("Let me see.", "So.")
    assert pieces[-1].usage.thinking_tokens == 5
    sent = handed_back(ANTHROPIC, "anthropic", pieces)["messages"][1]["content"]
    assert sent == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "sig=="},
        {"type": "text", "text": "So."},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "thinking", "thinking": "", "signature": "sig2"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    ]


def test_K6_thinking_that_was_cut_off_is_not_handed_back():
    cut = ({"type": "thinking", "thinking": ""}, [{"type": "thinking_delta", "thinking": "Let me"}])
    pieces = read(ANTHROPIC, *anthropic(cut, stop="max_tokens"))
    assert pieces == [ThinkingPiece(text="Let me"), StreamEnd(stop="length", usage=pieces[-1].usage)]


def test_an_anthropic_answer_that_is_not_streamed_is_understood_too():
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "So."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
    ]
    usage = {"input_tokens": 3, "output_tokens": 4}
    whole = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}
    assert read(ANTHROPIC, whole) == [
        ThinkingPiece(text="Hm."),
        TextPiece(text="So."),
        ToolCall(name="look", arguments='{"at": 1}', id="t1"),
        Thought(model=NAME, text="Hm.", data={"type": "thinking", "signature": "s"}),
        StreamEnd(usage=Usage(input_tokens=3, output_tokens=4)),
    ]


@every_row(
    ("wire", "event", "usage"),
    [
        (
            OPENAI,
            {
                "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 9,
                    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                    "completion_tokens_details": {"reasoning_tokens": 5},
                },
            },
            Usage(
                input_tokens=100,
                cached_tokens=60,
                cache_written_tokens=30,
                output_tokens=9,
                thinking_tokens=5,
            ),
        ),
        (
            OPENAI,
            {
                "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 9, "cached_tokens": 60},
            },
            Usage(input_tokens=100, cached_tokens=60, output_tokens=9),
        ),
        (
            OPENAI,
            {
                "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 9, "num_cached_tokens": 60},
            },
            Usage(input_tokens=100, cached_tokens=60, output_tokens=9),
        ),
        (
            OPENAI,
            {
                "choices": [{"delta": {}, "finish_reason": "stop"}],
                "x_groq": {"id": "req_1", "usage": {"prompt_tokens": 100, "completion_tokens": 9}},
            },
            Usage(input_tokens=100, output_tokens=9),
        ),
    ],
)
def test_K4_what_was_cached_and_what_was_thought_is_counted(wire, event, usage):
    assert read(wire, event)[-1].usage == usage
