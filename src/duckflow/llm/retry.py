"""Patience: a call that failed for now is made again, a few times, with growing waits (K4)."""

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
"""Longest wait of our own choice."""

LONGEST_ASKED_S = 300.0
"""Longest wait a provider may ask for. The user sees it count down and can stop; beyond it, they decide."""

REASONS = {
    "llm.rate_limited": "llm.waits_rate_limited",
    "llm.server_error": "llm.waits_server_error",
    "llm.timeout": "llm.waits_timeout",
    "llm.cut_off": "llm.waits_cut_off",
    "llm.unreachable": "llm.waits_unreachable",
    "embedded.died": "llm.waits_restart",
}
"""What the user reads while waiting, without the slots of the error itself."""

MOST_TRIES = {"llm.timeout": 2}
"""A call that used up its whole time is worth one more, not as many as a busy server."""


class RetryingClient(WrappingClient):
    """Another client, asked again where that may help, and for no more than the user lets one call take.

    Nothing but the model call is ever repeated.
    """

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
        """The answer; a `Retrying` piece voids what came before it."""
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
        """What the provider asked for, else twice as long each time, with some chance in it."""
        if asked_for is not None:
            return max(asked_for, 0.0)
        return min(FIRST_WAIT_S * 2 ** (tried - 1), LONGEST_WAIT_S) * (0.5 + self._chance() / 2)
