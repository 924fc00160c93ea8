"""Token counts, from the model's own tokenizer if it has one and otherwise estimated (F4)."""

import json
from math import ceil
from typing import Protocol, runtime_checkable

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import PICTURE_TOKENS, ModelClient, ModelRequest
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.wrapping_client import unwrapped

_PIECE = lazy_regex(
    r" ?[A-Z]?[a-z]{1,5}| ?[A-Z]{1,2}"  # words; long and camelCase ones in parts
    r"|[0-9]"  # some tokenizers make each digit a token
    r"| ?[!-/:-@\[-`{-~]{1,2}"
    r"|[\t\r\n]{1,2}| +"
    r"|[^\t\r\n -~]"  # Japanese and other scripts: one token per character
)
"""Pattern whose matches are about one token each; the tests compare it with four tokenizers."""

_KANJI = lazy_regex(r"[\u3400-\u9fff\uf900-\ufaff]")
_TWICE = lazy_regex(r"[\U00010000-\U0010ffff\u0e00-\u0e7f\u2190-\u23ff\u2600-\u2bff\ufe00-\ufe0f\u200d]")
"""Emoji, their joiners, symbols, Thai: two tokens per character."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few."""
    tokens = 1 + len(_PIECE.findall(text))
    return tokens if text.isascii() else tokens + len(_KANJI.findall(text)) // 3 + len(_TWICE.findall(text))


def estimate_request(request: ModelRequest) -> int:
    """Estimate the tokens of a request: messages, pictures, calls and tool definitions."""
    tokens = 0
    for message in request.messages:
        tokens += estimate_tokens(message.text) + PICTURE_TOKENS * len(message.pictures)
        tokens += sum(estimate_tokens(call.arguments) for call in message.calls)
    offered = (f"{tool.name} {tool.description} {json.dumps(tool.parameters)}" for tool in request.tools)
    return tokens + sum(map(estimate_tokens, offered))


@runtime_checkable
class Tokenizer(Protocol):
    """Model client that can count tokens."""

    async def count_tokens(self, text: str) -> int:
        """Return the number of tokens in a text."""
        ...


class TokenCounter:
    """Token counter for one model. Counts are not cached."""

    def __init__(self, client: ModelClient | None = None) -> None:
        inner = unwrapped(client)
        self._tokenizer = inner if isinstance(inner, Tokenizer) else None
        self._scale = client.traits.token_scale if client else 1.0

    async def count(self, text: str) -> int:
        """Return the number of tokens in a text."""
        if not text:
            return 0
        if self._tokenizer is None:
            return self._estimate(text)
        try:
            return await self._tokenizer.count_tokens(text)
        except ProviderError:
            return self._estimate(text)  # the next model call fails with the same error and reports it

    def _estimate(self, text: str) -> int:
        tokens = estimate_tokens(text)
        return tokens if self._scale == 1.0 else ceil(tokens * self._scale)
