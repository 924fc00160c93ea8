"""Retry model calls that failed temporarily, a few times, with growing waits (K4)."""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable

from duckflow.config.settings import LlmSettings
from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelClient, ModelPiece, ModelRequest, Retrying, StreamEnd
from duckflow.llm.streams import closing
from duckflow.llm.wrapping_client import WrappingClient

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
"""Longest wait if the provider does not ask for one."""

LONGEST_ASKED_S = 300.0
"""Longest wait a provider may ask for, with a countdown that the user can stop. A longer one is an error."""

REASONS = {
    "llm.rate_limited": "llm.waits_rate_limited",
    "llm.server_error": "llm.waits_server_error",
    "llm.timeout": "llm.waits_timeout",
    "llm.cut_off": "llm.waits_cut_off",
    "llm.unreachable": "llm.waits_unreachable",
    "embedded.died": "llm.waits_restart",
}
"""Keys of the messages shown during the wait, by the error's key. These messages take no values."""

MOST_TRIES = {"llm.timeout": 2}
"""Errors with a lower limit: a call that used up its time limit is retried only once."""


class RetryingClient(WrappingClient):
    """Wrap a client to retry temporary failures, within the user's limits on tokens and time per call."""

    def __init__(
        self,
        client: ModelClient,
        settings: LlmSettings,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(client)
        self._settings = settings
        self._sleep = sleep
        self._chance = chance

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the answer. A `Retrying` piece voids all pieces before it."""
        tokens = min(request.max_tokens, self._settings.max_tokens) + request.extra_tokens
        time_limit_s = self._settings.time_limit_s
        asked = replace(request, max_tokens=tokens, extra_tokens=0, time_limit_s=time_limit_s)
        max_tries = self._settings.max_retries + 1
        for tried in range(1, max_tries + 1):
            finished, failure = False, Unavailable("llm.cut_off")
            try:
                async with closing(self.inner.stream(asked)) as pieces:
                    async for piece in pieces:
                        finished = isinstance(piece, StreamEnd)
                        yield piece
            except Unavailable as exc:
                finished, failure = False, exc
            if finished:
                return
            if tried >= min(max_tries, MOST_TRIES.get(failure.key, max_tries)):
                raise failure
            if failure.retry_after_s is not None and failure.retry_after_s > LONGEST_ASKED_S:
                minutes = math.ceil(failure.retry_after_s / 60)
                raise ProviderError("llm.wait_too_long", minutes=f"{minutes:,}") from failure
            wait = self._wait(tried, failure.retry_after_s)
            yield Retrying(reason=REASONS.get(failure.key, "llm.waits_server_error"), wait_s=wait)
            await self._sleep(wait)

    def _wait(self, tried: int, asked_for: float | None) -> float:
        if asked_for is not None:
            return max(asked_for, 0.0)
        return min(FIRST_WAIT_S * 2 ** (tried - 1), LONGEST_WAIT_S) * (0.5 + self._chance() / 2)
