"""The layers besides the fixed text: the session, the work in hand, the step's procedure (SPEC F1)."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Literal

from duckflow.domain.decision import PromptPattern
from duckflow.domain.modes import Mode
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.state import AgentState, Items, Request
from duckflow.domain.text import one_line
from duckflow.domain.transitions import Step
from duckflow.domain.work.plan import TaskList, progress
from duckflow.prompts.templates import fill, template

Droppable = Literal["summaries", "open_questions", "plan_brief"]

PROCEDURES = {Step.PLANNING: "planning", Step.EXECUTION: "execution", Step.REVIEW: "review"}
"""The template of each step that has a procedure."""

SHOWS_MAIN: tuple[PromptPattern, ...] = ("base_main", "base_main_specialized")
SHOWS_PROCEDURE: tuple[PromptPattern, ...] = ("base_main_specialized", "base_specialized")

MODES: dict[Mode, str] = {
    "plan": "plan (nothing may be changed)",
    "ask": "ask (asks the user about every change)",
    "edits": "edits (asks about deletes and high risk)",
    "auto": "auto (asks about high risk)",
}

_LABELS = {
    "goal": "Goal",
    "why_now": "Why now",
    "constraints": "Constraints",
    "plan_brief": "Brief plan",
    "open_questions": "Open questions",
}
_TASK = 120
_REQUIREMENT = 200

LOW_FOCUS_BELOW = 0.5
LOW_FOCUS = "Your focus is low: make a simpler, more direct plan, and take its first step.\n"


def session_text(state: AgentState) -> str:
    """The facts of the session."""
    return fill("session", folder=PurePosixPath(state.workspace).name, mode=MODES[state.mode])


def summaries_text(lines: Sequence[str]) -> str:
    """What was spoken of before, a line each."""
    return fill("summaries", lines="\n".join(f"- {line}" for line in lines)) if lines else ""


def main_text(state: AgentState, dropped: Collection[Droppable] = ()) -> str:
    """The work in hand."""
    plan = state.active_plan
    return fill(
        "main",
        step=state.step,
        status=state.status,
        vitals=_vitals(state.vitals),
        task=f"Task: {one_line(state.request.text, _TASK)}\n" if state.request else "",
        requirements=_requirements(state.request),
        items=items_text(state.items, dropped),
        plan=f"Plan: {progress(plan)}\n" if plan else "",
        background="".join(_background(state)),
    )


def _requirements(request: Request | None) -> str:
    """What the request is judged by, once it is known (SPEC J8)."""
    found = request.objective.requirements if request else ()
    judged = bool(request and request.objective.evaluation)
    lines = (
        f"{place}. {one_line(one.requirement, _REQUIREMENT)}"
        + (f" (so far {one.satisfaction:.2f})\n" if judged else "\n")
        for place, one in enumerate(found, start=1)
    )
    return "".join(["Requirements it is judged by\n", *lines]) if found else ""


def items_text(items: Items, dropped: Collection[Droppable] = ()) -> str:
    """The five items that are set, a line each."""
    lines: list[str] = []
    for name, label in _LABELS.items():
        value = getattr(items, name)
        if value and name not in dropped:
            lines.append(f"{label}: {value if isinstance(value, str) else '; '.join(value)}\n")
    return "".join(lines)


def procedure_text(step: Step) -> str:
    """How the step is done; nothing for a step in which the model has nothing to do."""
    return template(PROCEDURES[step]) if step in PROCEDURES else ""


def _background(state: AgentState) -> Iterator[str]:
    if state.task_list and state.background_runs:
        yield _tasks(state.task_list)
    for one in state.background_commands:
        yield f"Runs in the background: {one.id} {one_line(one.command, _TASK)}\n"


def _tasks(tasks: TaskList) -> str:
    done = sum(task.status == "completed" for task in tasks.tasks)
    failed = sum(task.status == "failed" for task in tasks.tasks)
    running = next((f", now: {task.operation}" for task in tasks.tasks if task.status == "in_progress"), "")
    failures = f", {failed} failed" if failed else ""
    return f"In the background: {done} of {len(tasks.tasks)} tasks complete{failures}{running}\n"


def _vitals(vitals: Vitals) -> str:
    """How the work is going, and what follows from it for the next plan (SPEC F7)."""
    line = f"Vitals: mood {vitals.mood:.2f}, focus {vitals.focus:.2f}, stamina {vitals.stamina:.2f}\n"
    return line + LOW_FOCUS if vitals.focus < LOW_FOCUS_BELOW else line
