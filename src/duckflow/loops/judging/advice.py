"""Advice for the user: the cause of failures, the opinion of another model, and a progress report."""

from collections.abc import Iterator, Sequence
from typing import Literal

from duckflow.domain.errors import BadAnswer, ProviderError
from duckflow.domain.events import ErrorReported, Reply
from duckflow.domain.files.caches import is_cache
from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import one_line, percent
from duckflow.i18n.catalogue import text
from duckflow.loops.thinking.advisor import Advisor
from duckflow.prompts.evidence import evidence_in
from duckflow.services.evaluation import analyze_execution_failure

_LINES, _LINE = 6, 200
_SHOWN, _SHORT = 8, 160
_MOST_NAMED = 40
_MET = 0.8


async def find_cause(advisor: Advisor, state: AgentState, said: str) -> str:
    """Return the cause of the failures, as text for the user and the model."""
    failures = _failures(state)
    found = await _analyse(advisor, state, said, "failure") if failures else None
    listed = "\n".join(f"  • {line}" for line in failures) or f"  • {text('advice.no_failures')}"
    return found or text("advice.plain_cause", failures=listed)


async def second_opinion(advisor: Advisor, state: AgentState, said: str) -> str:
    """Return another model's opinion, or a progress report if that model gives none."""
    found = await _analyse(advisor, state, said, "second_opinion")
    return found or f"{text('advice.no_opinion')}\n{progress_text(state)}"


async def _analyse(
    advisor: Advisor, state: AgentState, said: str, kind: Literal["failure", "second_opinion"]
) -> str | None:
    request = f"{state.request.objective.request}\n\n{said}".strip() if state.request else said
    question = analyze_execution_failure(request, _failures(state), evidence_in(state), kind)
    found = await advisor.ask(question)
    if found is None:
        return None
    fixes = [f"  {number}. {fix}" for number, fix in enumerate(found.fixes, start=1)]
    title = text("advice.cause" if kind == "failure" else "advice.opinion", said=found.cause)
    return "\n".join([title, *fixes])


def _failures(state: AgentState) -> tuple[str, ...]:
    if state.request is None:
        return ()
    objective = state.request.objective
    errors = [line for one in (*objective.attempts, objective.current) for line in one.errors][-_LINES:]
    missing = objective.evaluation.missing_aspects[:_LINES] if objective.evaluation else ()
    lines = (*(errors or state.request.failing), *missing)
    return tuple(dict.fromkeys(one_line(line, _LINE) for line in lines if line.strip()))


def work_so_far(state: AgentState, error: ProviderError) -> tuple[ErrorReported, Reply]:
    """Return the error, and a reply about the work done before the model failed (A6)."""
    report, unusable = ErrorReported.of(error), isinstance(error, BadAnswer)
    if report.key == "llm.bad_answer":
        report = replace(report, key="llm.bad_last_answer")
    done = work_done(state.request) if state.request else ()
    title = text("settled.unusable_answer") if unusable else text("settled.no_answer")
    return report, Reply(text="\n".join([title, *done]))


def work_done(request: Request) -> Iterator[str]:
    """Yield lines for the user about the changed files and the commands of a request."""
    changed = [path for path in request.changed if not is_cache(path)]
    for key, removed in (("settled.changed", False), ("settled.removed", True)):
        if paths := [path for path in changed if (path in request.removed) == removed]:
            yield text(key, files=_listed(paths))
    if not changed:
        yield text("settled.nothing_changed")
    ran = [f"`{_short(one.command)}` ({one.exit_code})" for one in request.commands]
    if ran:
        yield text("settled.ran", commands=_listed(ran[-_SHOWN:]))


def _listed(names: Sequence[str]) -> str:
    more = f" … (+{len(names) - _MOST_NAMED})" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def progress_text(state: AgentState) -> str:
    """Return a report: goal, scored requirements, changed files, failures and findings."""
    request = state.request
    return "\n".join([text("progress.title"), *(_progress(state, request) if request else ())])


def _progress(state: AgentState, request: Request) -> Iterator[str]:
    yield text("progress.goal", goal=_short(state.items.goal or request.text))
    objective = request.objective
    for item in objective.requirements[:_SHOWN]:
        mark = "✓" if item.satisfaction >= _MET else "☐"
        yield f"  {mark} {_short(item.requirement)} ({percent(item.satisfaction)})"
    if request.acted:
        yield from work_done(request)
    if request.failing:
        yield text("progress.failing", what=_short(", ".join(request.failing[-_SHOWN:])))
    if objective.missing:
        yield text("progress.missing")
        yield from (f"  • {_short(line)}" for line in objective.missing[:_SHOWN])


def _short(line: str) -> str:
    return one_line(line, _SHORT)
