"""The last door before a model: whatever a prompt was made of, it leaves without secrets.

State is clean already. This is for what reaches a prompt on other ways: rules, a file shown to a small model,
an answer that goes back to be mended.
"""

from collections.abc import AsyncIterator

from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage, ModelClient, ModelPiece, ModelRequest, ModelTraits
from duckflow.llm.retry import RetryingClient
from duckflow.prompts.tokens import Tokenizer
from duckflow.safety.redaction.redactor import Redactor

_MOST_REMEMBERED = 50_000


class RedactedModel:
    """Another client, whose requests are redacted. A message is searched once, however often it is sent."""

    def __init__(self, client: ModelClient, redactor: Redactor) -> None:
        self._client = client
        self._redactor = redactor
        self._clean: set[tuple[int, int]] = set()

    @property
    def traits(self) -> ModelTraits:
        """Those of the client inside."""
        return self._client.traits

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """The answer to the request without its secrets."""
        messages = tuple(map(self._message, request.messages))
        schema = self._redactor.clean_all(request.answer_schema)
        return self._client.stream(replace(request, messages=messages, answer_schema=schema))

    async def aclose(self) -> None:
        """Close the client inside."""
        await self._client.aclose()

    def _message(self, message: ChatMessage) -> ChatMessage:
        seen = hash(message.text), len(message.text)
        if seen in self._clean:
            return message
        cleaned = self._redactor.clean(message.text)
        if cleaned != message.text:
            return replace(message, text=cleaned)
        if len(self._clean) >= _MOST_REMEMBERED:
            self._clean.clear()
        self._clean.add(seen)
        return message


class RedactedTokenizerModel(RedactedModel):
    """The same for a model that can tell how long a text is."""

    def __init__(self, client: ModelClient, tokenizer: Tokenizer, redactor: Redactor) -> None:
        super().__init__(client, redactor)
        self._tokenizer = tokenizer

    async def count_tokens(self, text: str) -> int:
        """Tokens of a text."""
        return await self._tokenizer.count_tokens(text)


def redacted(client: ModelClient, redactor: Redactor) -> RedactedModel:
    """The client behind its redaction."""
    inner = client.inner if isinstance(client, RetryingClient) else client
    if isinstance(inner, Tokenizer):
        return RedactedTokenizerModel(client, inner, redactor)
    return RedactedModel(client, redactor)
