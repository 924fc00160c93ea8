"""Token counts, from the model's own tokenizer if it has one and otherwise estimated (F4)."""

from math import ceil
from typing import Protocol, runtime_checkable

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ModelClient
from duckflow.llm.token_estimate import estimate_tokens
from duckflow.llm.wrapping_client import unwrapped

__all__ = ["TokenCounter", "Tokenizer", "estimate_tokens"]


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
