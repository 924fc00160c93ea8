"""Side questions about a request, as data: the model to ask, the type of the answer, and the fallback."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from pydantic import BaseModel

from duckflow.domain.errors import PromptTooLong, ProviderError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import Effort, JsonSchema, ModelClient, ModelRequest, ModelTraits, TierName, Usage
from duckflow.llm.answers.structured import ask

SHORTER_PROMPTS = 2
"""Number of times that a prompt is shortened if the provider finds it too long."""


class AskedModel(Frozen):
    """Model for a question (K1). Small models, which agree to anything, may answer only `small` questions."""

    tier: TierName
    output: str
    effort: Effort = "low"
    """Usual thinking effort."""
    small: bool = False


Draft = TypeVar("Draft", bound=BaseModel)
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Question(Generic[Draft, Answer]):
    """One question, ready to send."""

    asked: AskedModel
    prompt: Callable[[ModelTraits], ModelRequest]
    shape: type[Draft]
    """Type of the model's answer."""
    read: Callable[[Draft], Answer]
    """Converts the draft into the answer."""
    check: Callable[[Draft], Iterable[str]] = lambda _: ()
    """Lists everything that is wrong with a readable draft, in words for the model."""
    bound: bool = True
    """True if the answer's schema is enforced on models that support it."""
    otherwise: Callable[[], Answer] | None = None
    """Returns the fallback if no model can answer; without it, the caller gets the error."""
    covers: type[ProviderError] = ProviderError
    """Errors for which `otherwise` is used."""

    def fall_back(self, error: ProviderError) -> Answer:
        """Return the fallback for an error, or raise the error."""
        if self.otherwise is None or not isinstance(error, self.covers):
            raise error
        return self.otherwise()


async def put(
    client: ModelClient,
    question: Question[Draft, Answer],
    on_update: Callable[[LiveUpdate], None] = lambda _: None,
    effort: Effort | None = None,
) -> tuple[Answer, Usage]:
    """Ask one model, and return its answer and usage. Raise ProviderError if there is no fallback."""
    bound = schema_of(question.shape) if question.bound else None
    tries = 0
    while True:
        traits, tries = client.traits, tries + 1
        request = question.prompt(replace(traits, window=int(traits.window / traits.token_scale)))
        request = replace(request, effort=effort, answer_schema=request.answer_schema or bound)
        try:
            answer = await ask(client, request, question.shape, on_update, question.check)
        except ProviderError as error:
            if not isinstance(error, PromptTooLong) or tries > SHORTER_PROMPTS:
                return question.fall_back(error), error.usage or Usage()
            # The error has told the client the real size of its window.
        else:
            return question.read(answer.value), answer.usage


@cache
def schema_of(answer: type[BaseModel]) -> JsonSchema:
    """Return the schema of an answer, with all fields required for models that can be bound to it."""
    schema = answer.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        part["required"] = list(part.get("properties", {}))
    return schema
