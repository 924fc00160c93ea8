"""Context windows that the user set, or that were learned from errors and kept for later sessions (K7)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from duckflow.config.toml_file import save_text
from duckflow.domain.errors import PromptTooLong
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelClient, ModelPiece, ModelRequest, ModelTraits
from duckflow.llm.streams import closing
from duckflow.llm.tokens import estimate_request
from duckflow.llm.wrapping_client import WrappingClient

LEAST_WINDOW = 512
KEPT = timedelta(days=30)
"""Lifetime of a learned window. It expires because no error would reveal that a window has grown."""

_MOST_MODELS = 200
_MOST_BYTES = 200_000
_SCALES = 0.5, 3.0
"""Range of plausible ratios of actual to estimated tokens. Outside it, the error counted other things too."""


class LearnedWindow(Frozen):
    """Window and token scale that an error revealed for a model at one address."""

    window: Annotated[int, Field(ge=LEAST_WINDOW, le=100_000_000)]
    token_scale: Annotated[float, Field(ge=_SCALES[0], le=_SCALES[1])] = 1.0
    learned: datetime


class _LearnedFile(Frozen):
    models: dict[str, LearnedWindow] = Field(default_factory=dict[str, LearnedWindow])


class LearnedWindows:
    """File that keeps the learned windows for later sessions."""

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._now = now

    def find(self, model: str) -> LearnedWindow | None:
        """Return the learned window of a model, or None if it is unknown or expired."""
        return self._read().get(model)

    def keep(self, model: str, window: int, token_scale: float) -> None:
        """Save a learned window. A failed write is ignored: another session will learn it again."""
        learned = LearnedWindow(window=window, token_scale=token_scale, learned=self._now())
        known = {name: one for name, one in self._read().items() if name != model}
        models = dict([*known.items(), (model, learned)][-_MOST_MODELS:])
        with suppress(OSError):
            save_text(self._path, _LearnedFile(models=models).model_dump_json(indent=1))

    def _read(self) -> dict[str, LearnedWindow]:
        try:
            with self._path.open("rb") as file:
                models = _LearnedFile.model_validate_json(file.read(_MOST_BYTES)).models
        except (OSError, ValidationError):
            return {}
        oldest = self._now() - KEPT
        return {name: one for name, one in models.items() if one.learned >= oldest}


class WindowedClient(WrappingClient):
    """Wrap a client to apply the window that was set or learned, and to learn from each PromptTooLong."""

    def __init__(
        self, client: ModelClient, wanted: int | None, place: str, learned: LearnedWindows | None = None
    ) -> None:
        """`place` is the model with its address; `wanted` is the window that the user set."""
        super().__init__(client)
        self._place = place
        self._learned = learned
        self._traits = client.traits
        if wanted:
            self._traits = replace(self._traits, window=wanted, window_from="setting")
        elif learned and (known := learned.find(place)):
            self._take(known.window, known.token_scale)

    @property
    def traits(self) -> ModelTraits:
        """Return the inner client's traits with the window that is currently known."""
        return self._traits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the answer. A PromptTooLong shrinks `traits.window`, so that the next prompt is shorter."""
        asked = replace(request, window=self._traits.window)
        try:
            async with closing(self.inner.stream(asked)) as pieces:
                async for piece in pieces:
                    yield piece
        except PromptTooLong as error:
            self._take(*window_after(self._traits, error, estimate_request(request)))
            if self._learned is not None:
                keep = self._learned.keep
                await asyncio.to_thread(keep, self._place, self._traits.window, self._traits.token_scale)
            raise

    def _take(self, window: int, token_scale: float) -> None:
        self._traits = replace(self._traits, window=window, token_scale=token_scale, window_from="learned")


def window_after(traits: ModelTraits, error: PromptTooLong, estimated: int) -> tuple[int, float]:
    """Return the window and token scale to use after an error for a prompt of `estimated` tokens.

    The next prompt is always shorter, even if the prompt would fit in the window that the error names.
    """
    scale = traits.token_scale
    if error.asked and estimated:
        scale = min(max(error.asked / estimated, _SCALES[0]), _SCALES[1])
    size = int(estimated * scale)
    window = error.window or size // 2
    if window >= traits.window and (not error.asked or error.asked <= window):
        window = min(size, traits.window * 3 // 4)  # the prompt fitted, but not together with the answer
    return max(window, LEAST_WINDOW), scale
