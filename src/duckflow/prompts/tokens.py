"""How long a text is for a model: by its own tokenizer if it has one, else estimated (SPEC F4)."""

from typing import Protocol, runtime_checkable

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ModelClient
from duckflow.domain.patterns import late
from duckflow.llm.wrapping_client import unwrapped

_PIECE = late(
    r" ?[A-Z]?[a-z]{1,5}| ?[A-Z]{1,2}"  # words, in parts where they are long or camelCase
    r"|[0-9]"  # some tokenizers take each digit by itself
    r"| ?[!-/:-@\[-`{-~]{1,2}"
    r"|[\t\r\n]{1,2}| +"
    r"|[^\t\r\n -~]"  # Japanese and the like: a token a character
)
"""Each match is about one token; checked against four tokenizers in the tests."""

_KANJI = late(r"[\u3400-\u9fff\uf900-\ufaff]")
_TWICE = late(r"[\U00010000-\U0010ffff\u0e00-\u0e7f\u2190-\u23ff\u2600-\u2bff\ufe00-\ufe0f\u200d]")
"""Emoji, their joiners, signs, Thai: two tokens a character."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    tokens = 1 + len(_PIECE.findall(text))
    return tokens if text.isascii() else tokens + len(_KANJI.findall(text)) // 3 + len(_TWICE.findall(text))


@runtime_checkable
class Tokenizer(Protocol):
    """A model that can tell how long a text is."""

    async def count_tokens(self, text: str) -> int:
        """Tokens of a text."""
        ...


class TokenCounter:
    """Counts for one model. Nothing is kept: whoever needs a number again keeps it."""

    def __init__(self, client: ModelClient | None = None) -> None:
        inner = unwrapped(client)
        self._tokenizer = inner if isinstance(inner, Tokenizer) else None

    async def count(self, text: str) -> int:
        """Tokens of a text."""
        if not text:
            return 0
        if self._tokenizer is None:
            return estimate_tokens(text)
        try:
            return await self._tokenizer.count_tokens(text)
        except ProviderError:
            return estimate_tokens(text)  # the question that follows meets the same error, and tells it
