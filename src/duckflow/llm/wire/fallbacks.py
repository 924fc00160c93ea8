"""Repeat a request without the fields that a server refuses; compatible servers accept different fields."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple, cast

from duckflow.domain.errors import ProviderError, ToolsUnsupported, Unavailable
from duckflow.domain.model import ModelPiece
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.wire.errors import REFUSED

Body = dict[str, Any]

LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Fields that limit the answer's length; a server may refuse the limit as too high."""

LEAST_ROOM = 1024
"""Least limit to try. With a lower one the answer would be cut, so the error is more useful."""

MOST_LOWERED = 3
"""Most times that one request is repeated with a lower limit."""

_NUMBER = lazy_regex(r"(?<![\w.-])\d{3,9}(?![\w.-]*\w)")


class Fallback(NamedTuple):
    """Change of the request body after an error with one of `words`, if the body has `field`.

    Without a `change` or fields to `set`, the field is removed. A dot in `field` denotes a nested field. A
    fallback that is not `lasting` applies to one request only.
    """

    field: str
    words: tuple[str, ...]
    change: Callable[[Body], Body] | None = None
    lasting: bool = True
    set: Body | None = None

    def apply(self, body: Body) -> Body:
        """Return the changed body, or the same one if it lacks the field."""
        if not _has(body, self.field):
            return body
        if self.set:
            return {**body, **self.set}
        return self.change(body) if self.change else _without(body, self.field)


class Fallbacks:
    """Fallbacks that one server has needed so far. They are applied to all later requests."""

    def __init__(self, table: tuple[Fallback, ...]) -> None:
        self._table = table
        self._made: list[Fallback] = []
        self._limits: dict[str, int] = {}
        self.window: int | None = None
        """Model's window, if an error revealed it."""

    async def apply(
        self, body: Body, ask: Callable[[Body], AsyncGenerator[ModelPiece]]
    ) -> AsyncGenerator[ModelPiece]:
        """Stream the answer to `body`, applying as many fallbacks as it takes."""
        body = self._concede(body)
        passing: list[Fallback] = []
        lowered = 0
        while True:
            started = False
            pieces = ask(body)
            try:
                async for piece in pieces:
                    started = True
                    yield piece
            except ProviderError as exc:
                if started or isinstance(exc, Unavailable | ToolsUnsupported):
                    raise
                said = str(exc.values.get("detail", "")).lower()
                if lowered < MOST_LOWERED and (limited := self._lower(body, said)):
                    body, lowered = limited, lowered + 1
                    continue
                found = self._find(exc, said, body, passing)
                if found is None:
                    raise
                (self._made if found.lasting else passing).append(found)
                body = found.apply(body)
            else:
                return
            finally:
                await pieces.aclose()

    def _concede(self, body: Body) -> Body:
        for fallback in self._made:
            body = fallback.apply(body)
        lower = {name: limit for name, limit in self._limits.items() if body.get(name, 0) > limit}
        return {**body, **lower}

    def _find(
        self, refusal: ProviderError, said: str, body: Body, passing: list[Fallback]
    ) -> Fallback | None:
        if refusal.key != REFUSED:
            return None
        for fallback in self._table:
            new = fallback not in self._made and fallback not in passing
            if new and any(word in said for word in fallback.words) and fallback.apply(body) != body:
                return fallback
        return None

    def _lower(self, body: Body, said: str) -> Body | None:
        """Return the body with a lower limit for the answer if the server refused its limit, else None.

        Remembers the model's own limit, but not one that holds only for a prompt of this length.
        """
        numbers = [int(number) for number in _NUMBER.findall(said.replace(",", ""))]
        for name in LIMITS:
            asked = body.get(name, 0)
            if not asked or (name not in said and asked not in numbers):
                continue
            if asked in numbers:
                numbers.remove(asked)
            sums = {number + asked for number in numbers}
            numbers = [number for number in numbers if number not in sums]
            rooms = [
                (window - prompt, window)
                for window in numbers
                for prompt in numbers
                if prompt < window < prompt + asked and window - prompt >= LEAST_ROOM
            ]
            caps = [number for number in numbers if LEAST_ROOM <= number < asked]
            if rooms:
                room, self.window = min(rooms)
                # Some servers stop counting the prompt once it is too long.
                return {**body, name: room if room < asked * 0.9 else asked // 2}
            if name in said and caps:
                self._limits[name] = max(caps)
                return {**body, name: max(caps)}
        return None


def _has(body: Body, field: str) -> bool:
    outer, _, inner = field.partition(".")
    return outer in body and (not inner or (isinstance(body[outer], dict) and _has(body[outer], inner)))


def _without(body: Body, field: str) -> Body:
    outer, _, inner = field.partition(".")
    rest = {name: value for name, value in body.items() if name != outer}
    kept = _without(cast("Body", body[outer]), inner) if inner else {}
    return {**rest, outer: kept} if kept else rest
