"""A model that says what a test tells it to, from memory."""

from collections.abc import AsyncIterator, Sequence

from duckflow.domain.model import (
    ModelPiece,
    ModelRequest,
    ModelTraits,
    StopReason,
    StreamEnd,
    TextPiece,
    Usage,
)

ONE_CALL = Usage(input_tokens=10, cached_tokens=4, output_tokens=2)

Turn = str | Sequence[ModelPiece | Exception]


def said(text: str, *, stop: StopReason = "end", width: int = 7, usage: Usage = ONE_CALL) -> list[ModelPiece]:
    """A text as a model streams it: in small pieces, then the end."""
    pieces: list[ModelPiece] = [TextPiece(text=text[at : at + width]) for at in range(0, len(text), width)]
    return [*pieces, StreamEnd(stop=stop, usage=usage)]


class FakeModel:
    """Each call takes the next turn: a text, or pieces and errors in order. It remembers all requests."""

    def __init__(self, *turns: Turn, traits: ModelTraits | None = None) -> None:
        self.traits = traits or ModelTraits(name="fake")
        self.requests: list[ModelRequest] = []
        self.pieces_taken = 0
        self.streams_closed = 0
        self.closed = False
        self._turns = list(turns)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        self.requests.append(request)
        turn = self._turns.pop(0)
        try:
            for piece in said(turn) if isinstance(turn, str) else turn:
                if isinstance(piece, Exception):
                    raise piece
                self.pieces_taken += 1
                yield piece
        finally:
            self.streams_closed += 1

    async def aclose(self) -> None:
        self.closed = True
