"""What a request wants, in parts that can be checked; else the request itself as the one part (SPEC J1)."""

from collections.abc import Iterable

from duckflow.domain.errors import ProviderError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import Usage
from duckflow.domain.objective import Priority, RequirementItem
from duckflow.domain.ports import ModelClient
from duckflow.domain.text import cut
from duckflow.llm.answers.structured import ask
from duckflow.prompts.evaluation import requirements_request
from duckflow.services.schemas import schema_of

MOST_REQUIREMENTS = 8

_LINE, _REQUEST = 300, 500


class RequirementDraft(Frozen):
    """One requirement as a model writes it."""

    requirement: str
    priority: Priority = 1


class RequirementList(Frozen):
    """What a request wants, as a model writes it."""

    requirements: tuple[RequirementDraft, ...]


async def extract_task_requirements(
    client: ModelClient, request: str, summary: str = ""
) -> tuple[tuple[RequirementItem, ...], Usage]:
    """What the request wants, for the fast tier; the request itself where no model can tell."""
    asked = replace(
        requirements_request(client.traits, request, summary), answer_schema=schema_of(RequirementList)
    )
    try:
        answer = await ask(client, asked, RequirementList, lambda _: None, _problem)
    except ProviderError as error:
        return plain_requirements(request), error.usage or Usage()
    return _items(answer.value.requirements), answer.usage


def plain_requirements(request: str) -> tuple[RequirementItem, ...]:
    """The request itself as its only requirement: for when nobody can, or need, divide it."""
    return (RequirementItem(requirement=cut(" ".join(request.split()), _REQUEST)),)


def _problem(answer: RequirementList) -> str | None:
    if not any(draft.requirement.strip() for draft in answer.requirements):
        return "`requirements` needs at least one, and none may be empty"
    return None


def _items(drafts: Iterable[RequirementDraft]) -> tuple[RequirementItem, ...]:
    """Each once, and where there are too many, those that matter most, in the order given."""
    kept: dict[str, RequirementItem] = {}
    for draft in drafts:
        text = cut(" ".join(draft.requirement.split()), _LINE)
        if text:
            kept.setdefault(text.casefold(), RequirementItem(requirement=text, priority=draft.priority))
    most = sorted(kept.values(), key=lambda item: item.priority)[:MOST_REQUIREMENTS]
    return tuple(item for item in kept.values() if item in most)
