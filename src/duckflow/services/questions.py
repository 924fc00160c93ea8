"""The side questions around a request, as data: who is asked what, in which shape, and what else holds."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel

from duckflow.domain.errors import PromptTooLong, ProviderError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import (
    Effort,
    JsonSchema,
    ModelClient,
    ModelRequest,
    ModelTraits,
    TierName,
    Usage,
)
from duckflow.llm.answers.structured import StructuredAnswer, ask

SHORTER_PROMPTS = 2
"""How often a prompt is made shorter, after the provider said that it was too long, before the work stops."""

QuestionKind = Literal[
    "requirements",
    "verdict",
    "missing",
    "failure",
    "second_opinion",
    "first_plan",
    "next_plan",
    "plan",
    "tasks",
    "report",
    "title",
]


class AskedModel(Frozen):
    """Who is asked. A small model reads slowly and says yes to anything, so it is seldom asked."""

    tier: TierName
    output: str
    effort: Effort = "low"
    """How much thought it usually deserves."""
    small: bool = False


ASKED: Mapping[QuestionKind, AskedModel] = {
    "requirements": AskedModel(tier="fast", output="RequirementList"),
    "verdict": AskedModel(tier="evaluator", output="SatisfactionEvaluation", effort="high", small=True),
    "missing": AskedModel(tier="fast", output="MissingInfoAnalysis"),
    "failure": AskedModel(tier="evaluator", output="FailureAnalysis", effort="high"),
    "second_opinion": AskedModel(tier="evaluator", output="FailureAnalysis", effort="high"),
    "first_plan": AskedModel(tier="creative", output="PlanDraft", effort="high"),
    "next_plan": AskedModel(tier="creative", output="PlanDraft", effort="high"),
    "plan": AskedModel(tier="creative", output="PlanDraft", effort="high", small=True),
    "tasks": AskedModel(tier="creative", output="TaskListDraft", effort="medium", small=True),
    "report": AskedModel(tier="fast", output="TaskReport", small=True),
    "title": AskedModel(tier="fast", output="SessionTitle"),
}
"""Every question there is (K1)."""

Draft = TypeVar("Draft", bound=BaseModel)
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Question(Generic[Draft, Answer]):
    """One question, ready to be asked."""

    kind: QuestionKind
    prompt: Callable[[ModelTraits], ModelRequest]
    shape: type[Draft]
    """What the model writes."""
    read: Callable[[Draft], Answer]
    """What is made of it."""
    check: Callable[[Draft], Iterable[str]] = lambda _: ()
    """All that is wrong with a readable answer, in words for the model."""
    bound: bool = True
    """Whether a model that can be held to a shape is held to this one."""
    otherwise: Callable[[], Answer] | None = None
    """What holds if no model can tell; without it, the error goes to whoever asked."""
    covers: type[ProviderError] = ProviderError
    """The errors for which `otherwise` stands in."""


async def put(
    client: ModelClient,
    question: Question[Draft, Answer],
    on_update: Callable[[LiveUpdate], None] = lambda _: None,
    effort: Effort | None = None,
) -> tuple[Answer, Usage]:
    """The answer of one model, and what it took. Raises ProviderError if nothing stands in for it."""
    try:
        answer = await _ask_shorter(client, question, on_update, effort)
    except question.covers as error:
        if question.otherwise is None:
            raise
        return question.otherwise(), error.usage or Usage()
    return question.read(answer.value), answer.usage


async def _ask_shorter(
    client: ModelClient,
    question: Question[Draft, Answer],
    on_update: Callable[[LiveUpdate], None],
    effort: Effort | None,
) -> StructuredAnswer[Draft]:
    """The model's answer; a prompt that was too long is made again for the window that the error taught."""
    for _ in range(SHORTER_PROMPTS):
        with suppress(PromptTooLong):
            return await _ask(client, question, on_update, effort)
    return await _ask(client, question, on_update, effort)


async def _ask(
    client: ModelClient,
    question: Question[Draft, Answer],
    on_update: Callable[[LiveUpdate], None],
    effort: Effort | None,
) -> StructuredAnswer[Draft]:
    traits, check = client.traits, question.check
    request = question.prompt(replace(traits, window=int(traits.window / traits.token_scale)))
    request = replace(request, effort=effort)
    if question.bound and request.answer_schema is None:
        request = replace(request, answer_schema=schema_of(question.shape))
    return await ask(client, request, question.shape, on_update, check)


@cache
def schema_of(answer: type[BaseModel]) -> JsonSchema:
    """The schema of an answer; every field is wanted of a model that can be bound."""
    schema = answer.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        part["required"] = list(part.get("properties", {}))
    return schema
