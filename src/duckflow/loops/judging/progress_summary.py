"""Summary of what there is of a request, in the user's language."""

from collections.abc import Iterator

from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import one_line
from duckflow.domain.work.objective import RequirementItem
from duckflow.i18n.catalogue import text

_LINE, _LINES = 160, 8
_MET = 0.8


def progress_text(state: AgentState) -> str:
    """Goal, requirements with their scores, files changed, failures, and what was found so far."""
    request = state.request
    return "\n".join([text("progress.title"), *(_lines(state, request) if request else ())])


def _lines(state: AgentState, request: Request) -> Iterator[str]:
    yield text("progress.goal", goal=_short(state.items.goal or request.text))
    objective = request.objective
    for item in objective.requirements[:_LINES] if objective else ():
        yield _requirement(item)
    if request.changed:
        yield text("progress.changed", files=_listed(request.changed))
    if request.failing:
        yield text("progress.failing", what=_listed(request.failing))
    found = objective.results[-_LINES:] if objective else ()
    if found:
        yield text("progress.found")
        yield from (f"  • {_short(line)}" for line in found)
    if objective and objective.evaluation and objective.evaluation.missing_aspects:
        yield text("progress.missing")
        yield from (f"  • {_short(line)}" for line in objective.evaluation.missing_aspects[:_LINES])


def _requirement(item: RequirementItem) -> str:
    mark = "✓" if item.satisfaction >= _MET else "○"
    return f"  {mark} {_short(item.requirement)} ({item.satisfaction:.2f})"


def _listed(names: tuple[str, ...]) -> str:
    return _short(", ".join(names[-_LINES:]))


def _short(line: str) -> str:
    return one_line(line, _LINE)
