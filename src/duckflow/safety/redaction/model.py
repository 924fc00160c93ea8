"""Last redaction before a model: events are clean, but rules and other texts reach a prompt directly."""

from collections.abc import AsyncIterator

from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelClient, ModelPiece, ModelRequest
from duckflow.llm.wrapping_client import WrappingClient
from duckflow.safety.redaction.events import clean_message
from duckflow.safety.redaction.redactor import Redactor

_MOST_REMEMBERED = 50_000


class RedactedModel(WrappingClient):
    """Model client that redacts its requests. Each text is searched once, however often it is sent."""

    def __init__(self, client: ModelClient, redactor: Redactor) -> None:
        super().__init__(client)
        self._redactor = redactor
        self._clean: set[tuple[int, int]] = set()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Send the request without its secrets and stream the answer."""
        messages = tuple(clean_message(message, self._text) for message in request.messages)
        schema = self._redactor.clean_all(request.answer_schema)
        return self.inner.stream(replace(request, messages=messages, answer_schema=schema))

    def _text(self, text: str) -> str:
        seen = hash(text), len(text)
        if seen in self._clean:
            return text
        cleaned = self._redactor.clean(text)
        if cleaned != text:
            return cleaned
        if len(self._clean) >= _MOST_REMEMBERED:
            self._clean.clear()
        self._clean.add(seen)
        return text
