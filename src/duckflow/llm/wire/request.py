"""Preparation of requests for all wire formats: valid messages and calls, cache marks, room for thinking."""

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby
from re import Pattern

from duckflow.domain.frozen import replace
from duckflow.domain.model import PICTURE_TOKENS, ChatMessage, ModelRequest, ModelTraits, ToolCall
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import THINKING_ALLOWANCE

BYTES_PER_TOKEN = 3
"""Deliberately low, so that the estimate of a prompt's tokens is rather too high."""

SMALL_THINKERS = ("qwen3", "deepseek-r1", "gpt-oss", "magistral", "smollm3", "think", "reason")
"""Parts of the names of small models that think. Other small models ramble if their limit is raised."""

MAX_CACHE_MARKS = 4
"""Limit on cache marks: Anthropic refuses more, OpenAI ignores more."""

_BAD_IN_NAME = lazy_regex(r"[^a-zA-Z0-9_-]")
CHAT_ID = lazy_regex(r"[\x21-\x7e]{1,64}")


def bearer(key: str) -> dict[str, str]:
    """Return the header that carries a key, which may be empty."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def usable_messages(
    request: ModelRequest, model: str, *, fitting_id: Pattern[str] = CHAT_ID
) -> tuple[ChatMessage, ...]:
    """Return messages that a provider accepts: with valid ids and arguments, without other models' thoughts.

    If the request offers no tools, calls and results become text.
    """
    usable: list[ChatMessage] = []
    used: set[str] = set()
    called: dict[str, ToolCall] = {}
    for message in request.messages:
        if message.calls:
            called = {call.id: _fitting(call, fitting_id, used) for call in message.calls}
        answered = called.get(message.result_of) if message.result_of else None
        changed = replace(
            message,
            thoughts=tuple(thought for thought in message.thoughts if thought.model == model),
            calls=tuple(called[call.id] for call in message.calls),
            result_of=answered.id if answered else "",
        )
        usable.append(changed if request.tools else _as_text(changed, answered))
    return tuple(usable)


def _fitting(call: ToolCall, fitting_id: Pattern[str], used: set[str]) -> ToolCall:
    name = call.id
    if name in used or not fitting_id.fullmatch(name):
        name = sha256(f"{len(used)} {name}".encode("utf-8", "replace")).hexdigest()[:9]
    used.add(name)
    return ToolCall(
        name=_BAD_IN_NAME.sub("_", call.name)[:64] or "unnamed", arguments=_arguments(call), id=name
    )


def _arguments(call: ToolCall) -> str:
    """Return the arguments verbatim if they are a JSON object, else wrapped in one, as servers require."""
    try:
        if isinstance(json.loads(call.arguments), dict):
            return call.arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable": call.arguments}, ensure_ascii=False) if call.arguments.strip() else "{}"


def _as_text(message: ChatMessage, answered: ToolCall | None) -> ChatMessage:
    """Convert calls and results to text, since servers refuse them in a request without tools."""
    if answered is not None:
        text = f"[result of {answered.name}]\n{message.text}"
        return replace(message, text=text, result_of="", failed=False)
    if not message.calls:
        return message
    lines = [message.text, *(f"[called {call.name}({call.arguments})]" for call in message.calls)]
    return replace(message, text="\n".join(line for line in lines if line), calls=(), thoughts=())


def pictures_of(message: ChatMessage, request: ModelRequest) -> list[tuple[str, str]]:
    """Return the media type and the Base64 data of each of a message's pictures that the request contains."""
    data = request.picture_data
    return [(picture.media, data[picture.digest]) for picture in message.pictures if picture.digest in data]


def leading_system(messages: Sequence[ChatMessage]) -> int:
    """Count the system messages at the beginning. Later system messages are sent as the user's."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def cache_marks(messages: Sequence[ChatMessage]) -> set[int]:
    """Return the indexes of the messages that end a cached prefix: of the system part and of stable turns.

    Answers are never marked, because some of their blocks do not accept a mark.
    """
    system = leading_system(messages)
    stable = [at for at, message in enumerate(messages) if message.stable]
    first = [at for at in stable if at < system][-1:] or ([system - 1] if system else [])
    kept = range(system, stable[-1] + 1 if stable else 0)
    turns = groupby(kept, key=lambda at: messages[at].role == "assistant")
    ends = [list(places)[-1] for answers, places in turns if not answers]
    return {*first, *ends[-(MAX_CACHE_MARKS - len(first)) :]}


def answer_room(traits: ModelTraits, request: ModelRequest) -> int:
    """Return the token limit of the answer including its thinking, as far as the window allows."""
    name = traits.name.lower()
    if traits.small and not any(part in name for part in SMALL_THINKERS):
        return request.max_tokens
    left = (request.window or traits.window) - _prompt_tokens(request)
    return max(request.max_tokens, min(request.max_tokens + THINKING_ALLOWANCE, left))


def _prompt_tokens(request: ModelRequest) -> int:
    texts = [message.text for message in request.messages]
    texts += [call.arguments for message in request.messages for call in message.calls]
    texts += [thought.text for message in request.messages for thought in message.thoughts]
    texts += [json.dumps(tool.parameters) + tool.description for tool in request.tools]
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return size // BYTES_PER_TOKEN + PICTURE_TOKENS * len(request.picture_data)
