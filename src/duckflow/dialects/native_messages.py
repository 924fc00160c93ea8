"""The conversation in a provider's native protocol, where each call is followed by the result with its id."""

from collections.abc import Iterator, Sequence

from duckflow.dialects.native_tools import ASK_USER, FINISH, NOTE, native_name
from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage, ToolCall
from duckflow.domain.patterns import lazy_regex
from duckflow.prompts.conversation.lines import PromptLine

NOTED = "Noted. Continue, or reply without calls if all is done."

_WITHOUT_RESULT = {
    NOTE: NOTED,
    ASK_USER: "The user's answer follows, if all other calls of that answer succeeded.",
    FINISH: "Counts only if all other calls of that answer succeeded.",
}
_NOT_RUN = "Not run."
_HEADER = lazy_regex(r"\A(\[e\d+\]) \S+: (\w+)")
_ENDED = lazy_regex(r"\A(\[e\d+\]) ok\nexit code")
_LEFT_OUT = lazy_regex(r"^Not run: (.+)$", flags=8)


def as_native(lines: Sequence[PromptLine]) -> list[ChatMessage]:
    """Convert a conversation to messages. Thinking is sent back only during the same request (K6)."""
    asked = max((at for at, line in enumerate(lines) if line.kind == "said"), default=-1)
    messages: list[ChatMessage] = []
    start = 0
    answers = [at for at, line in enumerate(lines) if line.message.role == "assistant" and at > 0]
    for end in (*answers, len(lines)):
        messages += _turn([line.message for line in lines[start:end]], thinks=start > asked)
        start = end
    return messages


def result_of(call: ToolCall, text: str = "", *, failed: bool = False) -> ChatMessage:
    """Build the result of a call. Without a `text`, it gets a fixed sentence."""
    said = text or _WITHOUT_RESULT.get(call.name, _NOT_RUN)
    return ChatMessage(role="user", text=said, result_of=call.id, failed=failed)


def _turn(turn: Sequence[ChatMessage], *, thinks: bool) -> Iterator[ChatMessage]:
    """Yield an answer, then the results of its calls, then all other messages up to the next answer."""
    answer, *rest = turn or (None,)
    if answer is None:
        return
    yield answer if thinks or not answer.thoughts else replace(answer, thoughts=())
    results: dict[str, list[ChatMessage]] = {}
    ids = {call.id for call in answer.calls}
    for message in rest:
        if message.result_of in ids:
            results.setdefault(message.result_of, []).append(message)
    for call in answer.calls:
        yield _together(results[call.id]) if call.id in results else result_of(call)
    yield from (_plain(message) for message in rest if message.result_of not in ids)


def _together(parts: Sequence[ChatMessage]) -> ChatMessage:
    text = "\n\n".join(_in_native_words(part.text) for part in parts)
    stable, failed = any(part.stable for part in parts), any(part.failed for part in parts)
    return replace(parts[0], text=text, stable=stable, failed=failed)


def _plain(message: ChatMessage) -> ChatMessage:
    """Return a message that is not linked to a call, also for a result whose call is no longer shown."""
    return replace(message, text=_in_native_words(message.text), result_of="", failed=False)


def _in_native_words(text: str) -> str:
    text = _ENDED.sub(r"\1 exit code", _HEADER.sub(r"\1 \2", text, count=1), count=1)
    return _LEFT_OUT.sub(lambda found: f"Not run: {', '.join(map(native_name, found[1].split(', ')))}", text)
