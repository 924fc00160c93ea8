"""Requests repeated without what a server refuses: compatible servers differ in the fields they accept."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, NamedTuple

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ModelPiece
from duckflow.llm.wire.errors import REFUSED

Body = dict[str, Any]


class Fallback(NamedTuple):
    """Where a refusal has one of `words` and the body has `field`: what to add, else `field` is left out."""

    field: str
    words: tuple[str, ...]
    adds: Mapping[str, Any] | None = None


class Fallbacks:
    """What one server was found to refuse. It is asked again at once, and spared from then on."""

    def __init__(self, table: tuple[Fallback, ...]) -> None:
        self._table = table
        self._made: list[Fallback] = []

    async def apply(
        self, body: Body, ask: Callable[[Body], AsyncGenerator[ModelPiece]]
    ) -> AsyncGenerator[ModelPiece]:
        """The answer to `body`, with as many fallbacks as it takes."""
        while True:
            conceded = self._concede(body)
            started = False
            pieces = ask(conceded)
            try:
                async for piece in pieces:
                    started = True
                    yield piece
            except ProviderError as exc:
                found = self._find(exc, conceded)
                if started or found is None:
                    raise
                self._made.append(found)
            else:
                return
            finally:
                await pieces.aclose()

    def _concede(self, body: Body) -> Body:
        changed = dict(body)
        for fallback in self._made:
            if fallback.field in changed:
                if fallback.adds:
                    changed.update(fallback.adds)
                else:
                    del changed[fallback.field]
        return changed

    def _find(self, refusal: ProviderError, body: Body) -> Fallback | None:
        """A fallback not made yet that answers this refusal."""
        if refusal.key != REFUSED:
            return None
        said = str(refusal.values.get("detail", "")).lower()
        for fallback in self._table:
            fits = fallback.field in body and any(word in said for word in fallback.words)
            if fits and fallback not in self._made:
                return fallback
        return None
