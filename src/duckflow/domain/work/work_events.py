"""What happens to the work on a request: limits and vitals, requirements and verdicts, plans and tasks.

Import them from `domain/events.py`, where all events are listed.
"""

from typing import Literal

from duckflow.domain.decision import TaskProfile
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.limits import LoopLimit, LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import Evidence, ExecutionPlan, RequirementItem, SatisfactionEvaluation
from duckflow.domain.work.plan import Plan, TaskList


class LimitSet(Frozen):
    """How many loops the request may take, and what that number was made of (SPEC I2, I7)."""

    type: Literal["limit_set"] = "limit_set"
    limit: LoopLimit
    extended_from: int | None = None
    """What it was before, where the work got on and was given more."""


class VitalsChanged(Frozen):
    """How the duck is doing now, and what made it so (SPEC H1)."""

    type: Literal["vitals"] = "vitals"
    vitals: Vitals
    cause: Literal["request", "loop", "extension", "replan", "answer"]
    loop: int = 0
    signs: tuple[str, ...] = ()
    """How the loop repeated another, if it did."""
    moved_by: tuple[FocusEvent, ...] = ()
    """What moved focus."""
    confident: bool = True
    prompt_tokens: int = 0
    """How long the last prompt was."""
    trace: LoopTrace | None = None
    """What the loop did, to be compared with those to come."""


class RequirementsFound(Frozen):
    """What the request wants, in parts that can be checked (SPEC J1)."""

    type: Literal["requirements"] = "requirements"
    requirements: tuple[RequirementItem, ...]
    by: Literal["model", "program"] = "model"
    profile: TaskProfile | None = None
    """What kind of task it is; counts if no decision named one. Talk has no requirements."""
    told: str = ""
    """The text that tells the model; empty if it named them itself."""


class Evaluated(Frozen):
    """How far the request is met, by the evidence (SPEC J2). `checks` is what the program looked at.

    `results` is what it ran, each also one of the last of `checks`.
    """

    type: Literal["evaluation"] = "evaluation"
    iteration: int
    evaluation: SatisfactionEvaluation
    checks: tuple[Evidence, ...] = ()
    results: tuple[CheckResult, ...] = ()


class AttemptPlanned(Frozen):
    """What was there did not satisfy: how the next attempt goes about it (SPEC J4, J9)."""

    type: Literal["attempt_planned"] = "attempt_planned"
    number: int
    plan: ExecutionPlan
    learned: tuple[str, ...] = ()
    told: str
    """What the model is told: all that is known of the attempts before, and the plan."""


class VerifySet(Frozen):
    """The command whose success a request needs from now on; empty for none."""

    type: Literal["verify_set"] = "verify_set"
    command: str


class RequestRated(Frozen):
    """How the user liked the last request, from 1 to 10 (SPEC J7)."""

    type: Literal["request_rated"] = "request_rated"
    request_id: str
    rating: int


class PlanChanged(Frozen):
    """A plan was made, changed or removed. `change` says what happened, in a word."""

    type: Literal["plan_changed"] = "plan_changed"
    plan: Plan
    change: Literal["proposed", "approved", "revised", "step", "tasks", "deleted"]


class TaskListStarted(Frozen):
    """Tasks were handed to the background."""

    type: Literal["task_list_started"] = "task_list_started"
    task_list: TaskList


class TaskFinished(Frozen):
    """How one background task ended."""

    type: Literal["task_finished"] = "task_finished"
    list_id: str
    task_id: str
    operation: str
    status: Literal["completed", "failed"]
    result: str


class TaskReported(Frozen):
    """A task list has ended: what came of it, in words."""

    type: Literal["task_report"] = "task_report"
    list_id: str
    status: Literal["success", "partial", "failed", "cancelled"]
    completed: int
    failed: int
    pending: int
    summary: str
    by: Literal["model", "program"] = "program"
    """Whose words the summary is in."""
    failures: tuple[str, ...] = ()
    next_action: str = ""
