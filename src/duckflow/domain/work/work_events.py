"""Events about the work on a request: limits and vitals, requirements and verdicts, plans and tasks.

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
    """The loop limit was set or extended; `limit` shows how it was computed (I2, I7)."""

    type: Literal["limit_set"] = "limit_set"
    limit: LoopLimit
    extended_from: int | None = None
    """Previous limit, if it was extended because of progress."""


class VitalsChanged(Frozen):
    """The duck's vitals changed; `cause` says why (H1)."""

    type: Literal["vitals"] = "vitals"
    vitals: Vitals
    cause: Literal["request", "loop", "extension", "replan", "answer"]
    loop: int = 0
    signs: tuple[str, ...] = ()
    """Signs of repetition in the loop."""
    moved_by: tuple[FocusEvent, ...] = ()
    """Events that changed focus."""
    confident: bool = True
    prompt_tokens: int = 0
    """Tokens of the last prompt."""
    trace: LoopTrace | None = None
    """Trace of the loop, for comparison with later ones."""


class RequirementsFound(Frozen):
    """The request was divided into requirements that can be checked (J1)."""

    type: Literal["requirements"] = "requirements"
    requirements: tuple[RequirementItem, ...]
    by: Literal["model", "program"] = "model"
    profile: TaskProfile | None = None
    """Kind of task, used if no decision named one. Small talk has no requirements."""
    told: str = ""
    """Message that gives the model the requirements; empty if it named them itself."""


class Evaluated(Frozen):
    """The work was evaluated against the evidence (J2). `checks` are the program's own observations.

    `results` are the checks it ran; each is also among the last of `checks`.
    """

    type: Literal["evaluation"] = "evaluation"
    iteration: int
    evaluation: SatisfactionEvaluation
    checks: tuple[Evidence, ...] = ()
    results: tuple[CheckResult, ...] = ()


class AttemptPlanned(Frozen):
    """The result was not satisfactory, and the next attempt was planned (J4, J9)."""

    type: Literal["attempt_planned"] = "attempt_planned"
    number: int
    plan: ExecutionPlan
    learned: tuple[str, ...] = ()
    told: str
    """Message for the model: what is known of earlier attempts, and the plan."""


class VerifySet(Frozen):
    """The command that requests must pass was set; empty for none."""

    type: Literal["verify_set"] = "verify_set"
    command: str


class RequestRated(Frozen):
    """The user rated the last request, from 1 to 10 (J7)."""

    type: Literal["request_rated"] = "request_rated"
    request_id: str
    rating: int


class PlanChanged(Frozen):
    """A plan was created, changed or deleted; `change` says which."""

    type: Literal["plan_changed"] = "plan_changed"
    plan: Plan
    change: Literal["proposed", "approved", "revised", "step", "tasks", "deleted"]


class TaskListStarted(Frozen):
    """Tasks were handed to the background."""

    type: Literal["task_list_started"] = "task_list_started"
    task_list: TaskList


class TaskFinished(Frozen):
    """A background task ended."""

    type: Literal["task_finished"] = "task_finished"
    list_id: str
    task_id: str
    operation: str
    status: Literal["completed", "failed"]
    result: str


class TaskReported(Frozen):
    """A task list ended: its results and a summary."""

    type: Literal["task_report"] = "task_report"
    list_id: str
    status: Literal["success", "partial", "failed", "cancelled"]
    completed: int
    failed: int
    pending: int
    summary: str
    by: Literal["model", "program"] = "program"
    """Author of the summary."""
    failures: tuple[str, ...] = ()
    next_action: str = ""
