"""Ask for a structured answer, again if it is unusable. No part is used before the whole is valid (A6)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from duckflow.domain.errors import BadAnswer
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import LiveUpdate, ReplyVoid
from duckflow.domain.model import ChatMessage, ModelClient, ModelRequest, StopReason, Thought, Usage
from duckflow.domain.reading.fitting import fit
from duckflow.domain.text import cut
from duckflow.llm.answers.answer_fields import AnswerFields, read_fields
from duckflow.llm.answers.continuing import collect_whole
from duckflow.llm.answers.response import MAX_RESPONSE, CollectedResponse
from duckflow.llm.answers.strict_json import SURROGATE, UnusableAnswer

SHOWN_AGAIN, MOST_SHOWN_AGAIN = 4_000, 32_000
"""Least and most characters of a bad answer sent back to the model, depending on the model's window."""

_REPAIRS = 3
_PROBLEM, _FAULTS = 1_000, 6_000
_WINDOW_SHARE = 10

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class StructuredAnswer(Generic[T]):
    """Usable answer: its value, the model's text, and the usage of all tries together."""

    value: T
    text: str
    usage: Usage
    notes: tuple[str, ...] = ()
    """Sentences for the model about ignored parts of the answer."""
    unused: tuple[str, ...] = ()
    """Names of the blocks that were ignored."""
    thoughts: tuple[Thought, ...] = ()


async def ask(
    client: ModelClient,
    request: ModelRequest,
    answer: type[T],
    on_update: Callable[[LiveUpdate], None],
    check: Callable[[T], Iterable[str]] | None = None,
) -> StructuredAnswer[T]:
    """Ask for an `answer`. `check` returns more faults of an answer that fits the schema, as sentences.

    Raises BadAnswer if an answer has the same faults as the previous one, or after three repairs; its `usage`
    covers all tries.
    """
    spent, asked, faults = Usage(), request, ()
    stop: StopReason | None = None
    for _ in range(_REPAIRS + 1):
        response = await collect_whole(
            client,
            asked,
            on_update,
            spent,
            has_reply="reply" in answer.model_fields,
            is_usable=lambda cut: _is_usable(cut, request, answer),
        )
        spent, stop = spent + response.usage, response.stop
        try:
            value, read = _understand(response, request, answer, check)
        except UnusableAnswer as unusable:
            on_update(ReplyVoid())
            if unusable.faults == faults:
                break
            faults = unusable.faults
            asked = _repair(request, client, response, faults)
        else:
            if response.shown and response.shown != getattr(value, "reply", None):
                on_update(ReplyVoid())
            thoughts = tuple(response.thoughts)
            return StructuredAnswer(value, response.text, spent, read.notes, read.unused, thoughts)
    problem = cut(_encodable("; ".join(faults)), _PROBLEM)
    raise unusable_answer(stop, request, problem).with_usage(spent)


def unusable_answer(stop: StopReason | None, request: ModelRequest, problem: str) -> BadAnswer:
    """Return the error for a last answer that is still unusable, by the reason why the model stopped."""
    if stop == "refusal":
        return BadAnswer("llm.declined")
    if stop == "length":
        return BadAnswer("llm.still_cut", tokens=request.max_tokens)
    return BadAnswer("llm.bad_answer", output=request.output, problem=problem)


def _understand(
    response: CollectedResponse,
    request: ModelRequest,
    answer: type[T],
    check: Callable[[T], Iterable[str]] | None,
) -> tuple[T, AnswerFields]:
    check_whole(response)
    if response.calls:
        raise UnusableAnswer("no tool can be called here: give the JSON object as text")
    try:
        return read_answer(response.text, answer, check, ended=response.stop == "end")
    except UnusableAnswer as unusable:
        limit = f"the answer was cut at the limit of {request.max_tokens} tokens, say it shorter"
        was_cut = (limit,) if response.stop == "length" else ()
        raise UnusableAnswer(*was_cut, *unusable.faults) from unusable


def read_answer(
    text: str, answer: type[T], check: Callable[[T], Iterable[str]] | None, *, ended: bool
) -> tuple[T, AnswerFields]:
    """Return an answer and the fields it was read from, or raise UnusableAnswer with all its faults."""
    read = read_fields(text, answer, ended=ended)
    value, unfit = fit(answer, read.fields)
    wrong = check(value) if check is not None and value is not None else ()
    faults = (*read.faults, *unfit, *wrong)
    if faults or value is None:
        raise UnusableAnswer(*faults, *read.hints)
    return value, read


def _is_usable(response: CollectedResponse, request: ModelRequest, answer: type[BaseModel]) -> bool:
    try:
        _understand(response, request, answer, None)
    except UnusableAnswer:
        return False
    return True


def check_whole(response: CollectedResponse) -> None:
    """Raise UnusableAnswer if the response is incomplete, declined, empty or too large."""
    if response.too_large:
        raise UnusableAnswer(f"the answer is too large: more than {MAX_RESPONSE:,} bytes")
    if response.stop == "refusal":
        raise UnusableAnswer("the request was declined instead of answered")
    if response.stop is None:
        raise UnusableAnswer("the answer was cut off before its end")
    if not response.text.strip() and not response.calls:
        raise UnusableAnswer("the answer is empty")
    if SURROGATE.search(response.text):
        raise UnusableAnswer("the answer has half of a surrogate pair, which is no character")


def _repair(
    request: ModelRequest, client: ModelClient, response: CollectedResponse, faults: tuple[str, ...]
) -> ModelRequest:
    said = [response.text.strip(), *(f"{call.name} {call.arguments}" for call in response.calls)]
    shown = min(max(client.traits.window // _WINDOW_SHARE, SHOWN_AGAIN), MOST_SHOWN_AGAIN)
    bad = cut(_encodable("\n".join(said)).strip(), shown) or "(nothing)"
    listed = cut(_encodable("\n".join(f"- {fault}" for fault in faults)), _FAULTS)
    told = f"That answer can't be used, and none of it was run. Its faults:\n{listed}"
    wanted = f"Output: {request.output}\nAnswer again, complete: the JSON object and its blocks."
    again = (
        ChatMessage(role="assistant", text=bad),
        ChatMessage(role="user", text=f"{told}\n\n{wanted}"),
    )
    return replace(request, messages=request.messages + again)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
