"""What a request wants, in parts that can be checked; else the request itself as the one part (SPEC J1)."""

from collections.abc import Iterable

from duckflow.domain.frozen import Frozen
from duckflow.domain.text import one_line
from duckflow.domain.work.objective import AsksFor, Priority, RequirementItem
from duckflow.prompts.evaluation import requirements_request
from duckflow.services.questions import Question

MOST_REQUIREMENTS = 8

_LINE, _REQUEST = 300, 500


class RequirementDraft(Frozen):
    """One requirement as a model writes it."""

    requirement: str
    priority: Priority = 1
    asks_for: AsksFor | None = None


class RequirementList(Frozen):
    """What a request wants, as a model writes it."""

    requirements: tuple[RequirementDraft, ...]


def extract_task_requirements(
    request: str, summary: str = ""
) -> Question[RequirementList, tuple[RequirementItem, ...]]:
    """What the request wants; the request itself if no model can tell."""
    return Question(
        kind="requirements",
        prompt=lambda traits: requirements_request(traits, request, summary),
        shape=RequirementList,
        check=_problem,
        read=lambda answer: _items(answer.requirements),
        otherwise=lambda: plain_requirements(request),
    )


def plain_requirements(request: str) -> tuple[RequirementItem, ...]:
    """The request itself as its only requirement: for when nobody can, or need, divide it."""
    return (RequirementItem(requirement=one_line(request, _REQUEST)),)


def _problem(answer: RequirementList) -> str | None:
    if not any(draft.requirement.strip() for draft in answer.requirements):
        return "`requirements` needs at least one, and none may be empty"
    return None


def _items(drafts: Iterable[RequirementDraft]) -> tuple[RequirementItem, ...]:
    """Each once, and where there are too many, those that matter most, in the order given."""
    kept: dict[str, RequirementItem] = {}
    for draft in drafts:
        text = one_line(draft.requirement, _LINE)
        if text:
            item = RequirementItem(requirement=text, priority=draft.priority, asks_for=draft.asks_for)
            kept.setdefault(text.casefold(), item)
    most = sorted(kept.values(), key=lambda item: item.priority)[:MOST_REQUIREMENTS]
    return tuple(item for item in kept.values() if item in most)
