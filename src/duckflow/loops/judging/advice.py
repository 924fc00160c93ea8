"""Advice for the user: why the work fails, how another model sees it; plain facts if none can tell."""

from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import one_line
from duckflow.i18n.catalogue import text
from duckflow.loops.judging.progress_summary import progress_text
from duckflow.loops.thinking.advisor import Advisor
from duckflow.prompts.evidence import evidence_in
from duckflow.services.evaluation import (
    FailureAnalysis,
    analyze_execution_failure,
    give_second_opinion,
)

_LINES, _LINE = 6, 200


async def find_cause(advisor: Advisor, state: AgentState, said: str = "") -> str:
    """Why the work fails, for the user and the model."""
    failures = _failures(state)
    question = analyze_execution_failure(_request(state, said), failures, evidence_in(state))
    found = await advisor.ask(question) if failures else None
    if found is not None:
        return _shown("advice.cause", found)
    listed = "\n".join(f"  • {line}" for line in failures) or f"  • {text('advice.no_failures')}"
    return text("advice.plain_cause", failures=listed)


async def second_opinion(advisor: Advisor, state: AgentState, said: str = "") -> str:
    """How another model sees it."""
    question = give_second_opinion(_request(state, said), _failures(state), evidence_in(state))
    found = await advisor.ask(question)
    if found is not None:
        return _shown("advice.opinion", found)
    return f"{text('advice.no_opinion')}\n{progress_text(state)}"


def _shown(key: str, found: FailureAnalysis) -> str:
    fixes = [f"  {number}. {fix}" for number, fix in enumerate(found.fixes, start=1)]
    return "\n".join([text(key, said=found.cause), *fixes])


def _request(state: AgentState, said: str) -> str:
    request = state.request
    if request is None:
        return said
    whole = request.objective.request if request.objective else request.text
    return f"{whole}\n\n{said}".strip()


def _failures(state: AgentState) -> tuple[str, ...]:
    """What failed, or is failing still, and what is missing; oldest first."""
    lines = _noted(state.request) if state.request else []
    return tuple(dict.fromkeys(one_line(line, _LINE) for line in lines if line.strip()))


def _noted(request: Request) -> list[str]:
    objective = request.objective
    if objective is None:
        return list(request.failing)
    errors = [line for one in (*objective.attempts, objective.current) for line in one.errors]
    missing = objective.evaluation.missing_aspects if objective.evaluation else ()
    return [*(errors[-_LINES:] or request.failing), *missing[:_LINES]]
