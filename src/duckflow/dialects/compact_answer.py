"""Answers of small models in plain words, outside JSON, where they are longer and better.

A reply in the wrong language is asked for again, or translated by a separate call.
"""

from collections.abc import Callable

from pydantic import BaseModel, ValidationError

from duckflow.dialects.drafts import watch_for_loop
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.live_updates import LiveUpdate, ReplyPiece, ReplyVoid
from duckflow.domain.model import ChatMessage, ModelClient, ModelRequest, Usage
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import is_japanese
from duckflow.i18n.catalogue import Language
from duckflow.llm.answers.response import collect

OnUpdate = Callable[[LiveUpdate], None]

_ANSWER_TOKENS = 360
_QUOTED = 0.3
"""Largest share of Japanese characters in a reply that counts as English."""
_IN_ENGLISH = "Answer in English.\n\nOutput: Answer"
_IN_JAPANESE = "ユーザーの文章を日本語に訳してください。訳文だけを答えてください。"
_SENTENCE_END = lazy_regex(r"(?s).*(?:[.!?。！？](?=\s|\Z)|[。！？]|\n)")


class _JsonReply(BaseModel):
    reply: str


class WordedAnswer(Frozen):
    """Reply of a model in plain words, and the tokens that it used."""

    reply: str
    usage: Usage


async def answer_plainly(
    client: ModelClient, request: ModelRequest, language: Language, on_update: OnUpdate
) -> WordedAnswer:
    """Return the answer to a request for an answer, in the user's language if the model can."""
    plain = replace(request, output="Answer", answer_schema=None, max_tokens=_ANSWER_TOKENS, temperature=0.0)
    first = await _complete(client, plain, _shown_in(language, on_update))
    if not first.reply or _speaks(first.reply, plain, language):
        return first
    on_update(ReplyVoid())
    if language == "ja":
        second = await _in_japanese(client, plain, first.reply)
    else:
        said = ChatMessage(role="assistant", text=first.reply)
        asked = (*plain.messages, said, ChatMessage(role="user", text=_IN_ENGLISH))
        second = await _complete(client, replace(plain, messages=asked), on_update)
    return WordedAnswer(reply=second.reply or first.reply, usage=first.usage + second.usage)


async def _complete(client: ModelClient, request: ModelRequest, on_update: OnUpdate) -> WordedAnswer:
    loops = watch_for_loop()
    shown = 0

    def watch(text: str) -> bool:
        nonlocal shown
        said = text.lstrip()
        if not said.startswith(("{", "`")) and len(said.rstrip()) > shown:
            on_update(ReplyPiece(text=said.rstrip()[shown:]))
            shown = len(said.rstrip())
        return loops(text)

    response = await collect(client, request, until=watch)
    said = _without_json(response.text.strip())
    if response.stop != "end":
        whole = _SENTENCE_END.match(said)
        said = whole[0].rstrip() if whole else said
    if shown and said != response.text.strip():
        on_update(ReplyVoid())
    return WordedAnswer(reply=said, usage=response.usage)


async def _in_japanese(client: ModelClient, request: ModelRequest, reply: str) -> WordedAnswer:
    """Translate the reply in a separate call. In a conversation, a small model echoes the instruction."""
    wish = ChatMessage(role="system", text=_IN_JAPANESE)
    alone = replace(request, messages=(wish, ChatMessage(role="user", text=reply)))
    response = await collect(client, alone)
    said = response.text.strip()
    good = response.stop == "end" and is_japanese(said) and said not in _IN_JAPANESE
    return WordedAnswer(reply=said if good else "", usage=response.usage)


def _shown_in(language: Language, on_update: OnUpdate) -> OnUpdate:
    """Return a function that shows a reply only once it is in the user's language."""
    held = ""

    def show(update: LiveUpdate) -> None:
        nonlocal held
        if not isinstance(update, ReplyPiece):
            on_update(update)
            return
        held += update.text
        if language == "en" or is_japanese(held):
            on_update(ReplyPiece(text=held))
            held = ""

    return show


def _without_json(said: str) -> str:
    """Return the reply inside a JSON object, which the model may write instead of plain words."""
    if not said.startswith("{"):
        return said
    try:
        return _JsonReply.model_validate_json(said).reply.strip()
    except ValidationError:
        return said


def _speaks(reply: str, request: ModelRequest, language: Language) -> bool:
    """Return True if a reply is in the user's language. English may contain some Japanese."""
    if language == "ja":
        return is_japanese(reply)
    asked = any("japanese" in one.text.casefold() for one in request.messages if one.role == "user")
    return asked or sum(map(is_japanese, reply)) <= len(reply) * _QUOTED
