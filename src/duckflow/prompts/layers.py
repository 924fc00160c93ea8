"""Prompt layers besides the fixed text: the session, the current work and the step's procedure (F1)."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Literal

from duckflow.domain.decision import PromptPattern
from duckflow.domain.modes import Mode
from duckflow.domain.state import AgentState, Items
from duckflow.domain.text import one_line
from duckflow.domain.transitions import Status, Step
from duckflow.domain.work.objective import RequirementItem
from duckflow.domain.work.plan import TaskList, progress
from duckflow.prompts.templates import fill, template

Droppable = Literal["summaries", "open_questions", "plan_brief", "requirements"]

PROCEDURES = {Step.PLANNING: "planning", Step.EXECUTION: "execution", Step.REVIEW: "review"}
"""Template of each step that has a procedure."""

SHOWS_MAIN: tuple[PromptPattern, ...] = ("base_main", "base_main_specialized")
SHOWS_PROCEDURE: tuple[PromptPattern, ...] = ("base_main_specialized", "base_specialized")

MODES: dict[Mode, str] = {
    "plan": "plan (nothing may be changed)",
    "ask": "ask (asks the user about every change)",
    "edits": "edits (asks about deletes and high risk)",
    "auto": "auto (asks about high risk)",
}

SandboxKind = Literal["copy", "folder", "landlock", "external", "none"]
"""Sandbox of commands: a copy of the folder, the folder itself with limits, the user's own, or none."""

_KEPT_IN = "Commands run in a sandbox, in the folder itself; .git and protected files can only be read"
_COMMANDS: dict[SandboxKind, str] = {
    "copy": "Commands run in a sandbox, on a copy of the folder: what they changed is judged at their end.",
    "folder": f"{_KEPT_IN}.",
    "landlock": f"{_KEPT_IN}, and new files can not be made at its top.",
    "external": "Commands run in the folder itself, on a machine that the user calls the sandbox.",
    "none": "Commands run in the folder itself, without a sandbox; the user is asked before each.",
}
_NO_NETWORK = "The network is off: to ask for it, run a command with network true."
_NO_SECRETS = (
    "Secrets that git does not track (.env, keys) are empty there: to ask for one, name it in secrets."
)

_LABELS = {
    "goal": "Goal",
    "why_now": "Why now",
    "constraints": "Constraints",
    "plan_brief": "Brief plan",
    "open_questions": "Open questions",
}
UNATTENDED = "No user is there to answer. What needs their consent (high risk, the network) ends the run.\n"
_ASIDE = (
    "reply to what they said, and they are asked again, or propose something else instead. "
    "Where it is offered, they can answer a (always for this kind); /mode edits asks less often."
)
_TASK = 120
_STATUS = {
    Status.ERROR: ", the last action failed",
    Status.REQUIRES_USER_INPUT: ", waiting for the user",
}
_REQUIREMENT = 300

_LOW_FOCUS, _LOW_STAMINA = 0.5, 0.3
LOW_FOCUS = "Your focus is low: make a simpler, more direct plan, and take its first step.\n"
LOW_STAMINA = "Your stamina is low: finish what matters most, or say what is missing.\n"


def session_text(state: AgentState, sandbox: str = "") -> str:
    """Describe the session. `sandbox` is the result of `sandbox_text`."""
    folder = PurePosixPath(state.workspace).name
    alone = "" if state.attended else UNATTENDED
    return fill("session", folder=folder, mode=MODES[state.mode], sandbox=sandbox + alone)


def sandbox_text(kind: SandboxKind, *, network: bool, output: int) -> str:
    """Describe for the model how its commands run, in two or three lines."""
    own = kind in ("copy", "folder")
    place = "/tmp" if own else "$TMPDIR"  # noqa: S108 - private to the sandbox
    temporary = f"{place} is private and kept between commands."
    is_open = network or kind in ("external", "none")
    shown = f"You see {output:,} characters of their output at most: print the lines you need."
    lines = (
        f"{_COMMANDS[kind]} {shown}",
        f"{temporary} {'The network is open.' if is_open else _NO_NETWORK}",
    )
    return "".join(f"{line}\n" for line in (*lines, *((_NO_SECRETS,) if own else ())))


def main_text(state: AgentState, dropped: Collection[Droppable] = ()) -> str:
    """Describe the current work: step, status, requirements, plan and background tasks."""
    plan, objective = state.active_plan, state.request.objective if state.request else None
    requirements = ""
    if objective and "requirements" not in dropped:
        requirements = requirements_text(objective.requirements, judged=objective.evaluation is not None)
    return fill(
        "main",
        step=state.step,
        status=_STATUS.get(state.status, ""),
        # The model need not know about vitals that are fine (F7).
        vitals=(LOW_FOCUS if state.vitals.focus < _LOW_FOCUS else "")
        + (LOW_STAMINA if state.vitals.stamina < _LOW_STAMINA else ""),
        task=f"Task: {one_line(state.request.text, _TASK)}\n" if state.request else "",
        requirements=requirements,
        items=items_text(state.items, dropped),
        plan=f"Plan: {progress(plan)}\n" if plan else "",
        background="".join(_background(state)),
    )


def requirements_text(found: Sequence[RequirementItem], *, judged: bool = False) -> str:
    """Return the requirements, one per line, with their scores if they have been `judged`."""
    lines = (
        f"{place}. {one_line(one.requirement, _REQUIREMENT)}"
        + (f" (so far {one.satisfaction:.2f})\n" if judged else "\n")
        for place, one in enumerate(found, start=1)
    )
    return "".join(["Requirements it is judged by\n", *lines]) if found else ""


def items_text(items: Items, dropped: Collection[Droppable] = ()) -> str:
    """Return the session items that are set, one per line."""
    lines: list[str] = []
    for name, label in _LABELS.items():
        value = getattr(items, name)
        if value and name not in dropped:
            lines.append(f"{label}: {value if isinstance(value, str) else '; '.join(value)}\n")
    return "".join(lines)


def procedure_text(step: Step) -> str:
    """Return the procedure of a step, or an empty text for a step without one."""
    return template(PROCEDURES[step]) if step in PROCEDURES else ""


def _background(state: AgentState) -> Iterator[str]:
    if state.set_aside:
        yield f"The user has not answered yet whether {state.set_aside[0].operation} may run: {_ASIDE}\n"
    if state.task_list and state.background_runs:
        yield _tasks(state.task_list)
    if state.approval and state.approval.task_id:
        yield f"The user is asked whether {state.approval.action.operation} may run in the background.\n"
    for one in state.background_commands:
        yield f"Runs in the background: {one.id} {one_line(one.command, _TASK)}\n"


def _tasks(tasks: TaskList) -> str:
    done = sum(task.status == "completed" for task in tasks.tasks)
    failed = sum(task.status == "failed" for task in tasks.tasks)
    running = next((f", now: {task.operation}" for task in tasks.tasks if task.status == "in_progress"), "")
    failures = f", {failed} failed" if failed else ""
    return f"In the background: {done} of {len(tasks.tasks)} tasks complete{failures}{running}\n"
