"""Structured answers: ask a model, read what it says strictly, and ask once more where that fails (SPEC A6).

One mechanism for every kind of answer. Nothing of an answer is used before all of it was read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from duckflow.domain.errors import BadAnswer, ProviderError
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import LiveUpdate, ReplyVoid
from duckflow.domain.model import ChatMessage, ModelClient, ModelRequest, Thought, Usage
from duckflow.domain.text import cut
from duckflow.domain.validation import describe_faults
from duckflow.llm.answers.continuing import collect_whole
from duckflow.llm.answers.raw_blocks import read_answer
from duckflow.llm.answers.response import MAX_RESPONSE, SURROGATE, CollectedResponse
from duckflow.llm.answers.strict_json import JsonObject, UnusableAnswer

SHOWN_AGAIN = 4_000
"""Characters of a bad answer that go back to the model with its fault."""

_TRIES = 2
_PROBLEM = 1_000

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class StructuredAnswer(Generic[T]):
    """A usable answer: what it means, what the model said, and what all tries together cost."""

    value: T
    text: str
    usage: Usage
    tries: int
    thoughts: tuple[Thought, ...] = ()


async def ask(
    client: ModelClient,
    request: ModelRequest,
    answer: type[T],
    on_update: Callable[[LiveUpdate], None],
    check: Callable[[T], str | None] | None = None,
) -> StructuredAnswer[T]:
    """Ask for one `answer`. `check` may refuse a readable one with an exact sentence for the model.

    Raises BadAnswer when the second try can't be used either; its `usage` says what was spent.
    """
    spent, asked, problem = Usage(), request, ""
    for attempt in range(1, _TRIES + 1):
        try:
            response = await collect_whole(
                client,
                asked,
                on_update,
                has_reply="reply" in answer.model_fields,
                is_usable=lambda cut: _is_usable(cut, request, answer),
            )
        except ProviderError as error:
            error.usage = spent + (error.usage or Usage())
            raise
        spent += response.usage
        try:
            value = _understand(response, request, answer, check)
        except UnusableAnswer as fault:
            problem = cut(_encodable(fault.problem), _PROBLEM)
            asked = _repair(request, response, problem)
            on_update(ReplyVoid())
        else:
            if response.shown and response.shown != getattr(value, "reply", None):
                on_update(ReplyVoid())
            return StructuredAnswer(value, response.text, spent, attempt, tuple(response.thoughts))
    error = BadAnswer("llm.bad_answer", output=request.output, problem=problem)
    error.usage = spent
    raise error


def _understand(
    response: CollectedResponse,
    request: ModelRequest,
    answer: type[T],
    check: Callable[[T], str | None] | None,
) -> T:
    """The answer, whole and permitted, or an UnusableAnswer with the reason."""
    check_whole(response)
    try:
        value = answer.model_validate(_fields(response))
    except ValidationError as exc:
        raise UnusableAnswer(describe_faults(exc, answer)) from exc
    except UnusableAnswer as fault:
        if response.stop != "length":
            raise
        limit = f"the answer was cut at the limit of {request.max_tokens} tokens, say it shorter"
        raise UnusableAnswer(f"{limit} ({fault.problem})") from fault
    problem = check(value) if check else None
    if problem:
        raise UnusableAnswer(problem)
    return value


def _is_usable(response: CollectedResponse, request: ModelRequest, answer: type[BaseModel]) -> bool:
    """Whether a response that was cut says all that matters."""
    try:
        _understand(response, request, answer, None)
    except UnusableAnswer:
        return False
    return True


def check_whole(response: CollectedResponse) -> None:
    """Refuse an answer that did not arrive whole."""
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


def _fields(response: CollectedResponse) -> JsonObject:
    if response.calls:
        raise UnusableAnswer("no tool can be called here: give the JSON object as text")
    return read_answer(response.text)


def _repair(request: ModelRequest, response: CollectedResponse, problem: str) -> ModelRequest:
    """The same request, with the bad answer and its exact fault behind it."""
    said = [response.text.strip(), *(f"{call.name} {call.arguments}" for call in response.calls)]
    bad = cut(_encodable("\n".join(said)).strip(), SHOWN_AGAIN) or "(nothing)"
    wanted = f"That answer can't be used: {problem}\n\nOutput: {request.output}\nAgain, only the JSON object"
    again = (ChatMessage(role="assistant", text=bad), ChatMessage(role="user", text=f"{wanted}, complete."))
    return replace(request, messages=request.messages + again)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
