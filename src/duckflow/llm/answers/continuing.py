"""Continue answers that the length limit cut, or ask for them again with a higher limit (K4)."""

import re
from collections.abc import Callable

from duckflow.domain.errors import BadAnswer, ProviderError
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import LiveUpdate, ReplyVoid, Waiting
from duckflow.domain.model import ChatMessage, ModelClient, ModelRequest, Usage
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.answers.response import CollectedResponse, collect

MOST_ROUNDS = 2
"""Maximum number of times that one answer is continued or asked for again."""

MORE_ROOM = 8192
"""Tokens added in the first round if thinking left none for the answer; the second adds three times that."""

CONTINUE = (
    "Your answer was cut because it reached its length limit. Continue exactly where it stopped, with the "
    "very next character: repeat nothing, explain nothing, open no new code fence."
)
CALL_AGAIN = " A tool call that was cut must be made again."

_WINDOW_SHARE = 4
_OVERLAP, _LETTERS = 6, 4
"""Fewest characters, and fewest distinct characters, of a repetition that counts as an overlap."""
_LONGEST_OVERLAP = 4_000
_SAME_START = 40
"""A continuation that begins with this many of the answer's first characters is a complete rewrite."""
_FENCE = lazy_regex(r"\s*```[^\n]*\n")
_THOUGHT = lazy_regex(r"\s*<think>(?:(?!</think>).)*\Z", re.DOTALL)


async def collect_whole(
    client: ModelClient,
    request: ModelRequest,
    on_update: Callable[[LiveUpdate], None],
    spent: Usage,
    *,
    has_reply: bool,
    is_usable: Callable[[CollectedResponse], bool],
) -> CollectedResponse:
    """Ask the model, and get the rest of an answer that was cut before it was usable.

    After MOST_ROUNDS, returns an answer that is still cut, or raises BadAnswer if it is only thinking. The
    usage of an error includes `spent`, that of earlier tries.
    """
    try:
        response = await collect(client, request, on_update, has_reply=has_reply)
    except ProviderError as error:
        error.with_usage(spent)
        raise
    for number in range(1, MOST_ROUNDS + 1):
        if response.stop != "length" or is_usable(response):
            return response
        thought = only_thought(response)
        if client.traits.small and not thought:
            return response  # small models start something else instead of continuing
        extra = min(MORE_ROOM if thought else request.max_tokens, client.traits.window // _WINDOW_SHARE)
        asked = replace(request, extra_tokens=extra * (2**number - 1))
        reason = (
            "llm.thought_only" if thought else "llm.answer_cut_again" if response.calls else "llm.answer_cut"
        )
        if response.calls:
            on_update(ReplyVoid())
        on_update(Waiting(reason=reason))
        try:
            if thought or response.calls:
                asked = replace(asked, effort="low") if thought else asked
                again = await collect(client, asked, on_update, has_reply=has_reply)
                again.usage += response.usage
                response = again
            else:
                response = await _continue(client, asked, on_update, response, has_reply=has_reply)
        except ProviderError:
            return response  # perhaps a refused limit; the partial answer is more useful than this error
    if response.stop == "length" and only_thought(response):
        raise BadAnswer("llm.thought_only_still", rounds=MOST_ROUNDS + 1).with_usage(spent + response.usage)
    return response


def only_thought(response: CollectedResponse) -> bool:
    """Return True if the answer consists of nothing but thinking."""
    text = response.text
    return not response.calls and (not text.strip() or _THOUGHT.match(text) is not None)


def join_parts(first: str, rest: str) -> str:
    """Join an answer and its continuation, which may overlap, open a code fence, or be a complete rewrite."""
    if len(first) >= _SAME_START and rest.lstrip().startswith(first.lstrip()[:_SAME_START]):
        return rest
    fence = _FENCE.match(rest)
    bare = rest[fence.end() :] if fence and not first.endswith("\n") else rest
    for part in (rest, bare, bare.lstrip()):
        repeated = _overlap(first, part)
        if repeated:
            return first + part[repeated:]
    return first + bare


def _overlap(first: str, rest: str) -> int:
    """Return the length of the start of `rest` that repeats the end of `first`; 0 if that may be chance."""
    for length in range(min(len(first), len(rest), _LONGEST_OVERLAP), _OVERLAP - 1, -1):
        if first.endswith(rest[:length]) and len(set(rest[:length])) >= _LETTERS:
            return length
    return 0


async def _continue(
    client: ModelClient,
    request: ModelRequest,
    on_update: Callable[[LiveUpdate], None],
    first: CollectedResponse,
    *,
    has_reply: bool,
) -> CollectedResponse:
    """Ask for the rest of an answer and append it. Show it only when complete: it may repeat `first`."""
    said = ChatMessage(role="assistant", text=first.text)
    wanted = ChatMessage(role="user", text=CONTINUE + (CALL_AGAIN if request.tools else ""))
    asked = replace(request, messages=(*request.messages, said, wanted))
    rest = await collect(client, asked, on_update)
    whole = join_parts(first.text, rest.text)
    if whole.startswith(first.text):
        first.append_rest(whole[len(first.text) :], rest)
        return first
    on_update(ReplyVoid())
    again = CollectedResponse(on_update, has_reply=has_reply, plain=bool(request.tools))
    again.append_rest(whole, rest)
    again.usage += first.usage
    return again
