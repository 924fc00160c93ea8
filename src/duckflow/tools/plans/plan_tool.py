"""Tools of plan_tool: plans are proposed, read, approved by the user, updated and deleted (B2, B4, B7).

Each tool reads the state and returns changes as events; none of them writes.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, get_args

from pydantic import Field, field_validator

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import PlanChanged
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, WorkStatus, derive, progress
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import NoArguments, Proposal, Tool, ToolResult
from duckflow.tools.plans.plan_revision import RevisePlan, revised
from duckflow.tools.plans.plan_search import (
    check_may_start,
    check_not_under_way,
    drafted,
    find_plan,
    find_step,
)
from duckflow.tools.plans.plan_text import plan_text

State = Callable[[], AgentState]
Draft = Callable[[str], Awaitable[Plan]]

APPROVE = "plan_tool.approve"


class ProposePlan(Frozen):
    """Arguments of plan_tool.propose."""

    goal: str = Field(description="what the plan must reach, with all that is known of it")

    @field_validator("goal")
    @classmethod
    def _some(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value


class AnyPlan(Frozen):
    """Arguments of plan_tool.get and plan_tool.approve."""

    plan_id: str | None = Field(default=None, description="the plan; the one in hand unless told")


class UpdateStep(Frozen):
    """Arguments of plan_tool.update_step."""

    step_id: str = Field(description="the step")
    status: WorkStatus = Field(description="what it is now")


class DeletePlan(Frozen):
    """Arguments of plan_tool.delete."""

    plan_id: str = Field(description="the plan")


def plan_tools(state: State, draft: Draft) -> tuple[Tool, ...]:
    """Return all plan tools. `draft` asks a model for a plan that reaches a goal."""
    return (
        _propose_tool(state, draft),
        _get_tool(state),
        _list_tool(state),
        _approve_tool(state),
        _update_step_tool(state),
        _revise_tool(state, draft),
        _delete_tool(state),
    )


def _propose_tool(state: State, draft: Draft) -> Tool:
    async def run(args: ProposePlan, _access: Access) -> ToolResult:
        plan = derive(await drafted("plan", draft(args.goal)))
        return _unseen(state(), plan, "proposed")

    summary = "draft a plan for long work; goal says what it must reach"
    return Tool(operation="plan_tool.propose", args=ProposePlan, summary=summary, effect="read", run=run)


def _get_tool(state: State) -> Tool:
    async def run(args: AnyPlan, _access: Access) -> ToolResult:
        return ToolResult(text=plan_text(find_plan(state(), args.plan_id)))

    summary = "a plan by plan_id, or the one in hand, with steps and tasks"
    return Tool(operation="plan_tool.get", args=AnyPlan, summary=summary, effect="read", run=run)


def _list_tool(state: State) -> Tool:
    async def run(_args: NoArguments, _access: Access) -> ToolResult:
        now = state()
        lines = [
            f"{progress(plan)}{' [in hand]' if plan.plan_id == now.active_plan_id else ''}"
            for plan in now.plans
        ]
        return ToolResult(text="\n".join(lines) or "There are no plans.")

    summary = "all plans, a line each"
    return Tool(operation="plan_tool.list", args=NoArguments, summary=summary, effect="read", run=run)


def _approve_tool(state: State) -> Tool:
    async def propose(args: AnyPlan, _workspace: Workspace) -> Proposal:
        plan = find_plan(state(), args.plan_id)
        return Proposal("" if plan.approved else plan_text(plan, whole=True))

    async def run(args: AnyPlan, _access: Access) -> ToolResult:
        plan = find_plan(state(), args.plan_id)
        if plan.approved:
            return ToolResult(text=f"The user approved {plan.plan_id} before.")
        approved = derive(replace(plan, approved=True))
        text = f"The user approved {plan.plan_id}.\n{_next(approved)}"
        return ToolResult(text=text, events=(PlanChanged(plan=approved, change="approved"),))

    summary = "ask the user to approve a plan by plan_id; high risk needs it"
    return Tool(operation=APPROVE, args=AnyPlan, summary=summary, effect="consent", run=run, propose=propose)


def _update_step_tool(state: State) -> Tool:
    async def run(args: UpdateStep, _access: Access) -> ToolResult:
        plan, step = find_step(state(), args.step_id)
        if step.task_list:
            raise ToolError(f"{step.step_id} has tasks: its status follows from them and is {step.status}.")
        if args.status in ("in_progress", "completed"):
            check_may_start(plan, step)
        changed = replace(step, status=args.status)
        steps = tuple(changed if one.step_id == step.step_id else one for one in plan.steps)
        after = derive(replace(plan, steps=steps))
        return ToolResult(text=progress(after), events=(PlanChanged(plan=after, change="step"),))

    summary = f"set the status ({', '.join(get_args(WorkStatus))}) of step_id, if it has no tasks"
    return Tool(operation="plan_tool.update_step", args=UpdateStep, summary=summary, effect="read", run=run)


def _revise_tool(state: State, draft: Draft) -> Tool:
    async def run(args: RevisePlan, _access: Access) -> ToolResult:
        plan_id = find_plan(state(), args.plan_id).plan_id
        fresh = await drafted("plan", draft(args.goal or "")) if args.steps is None else None
        # Read the state again, because background tasks of this plan may have finished meanwhile.
        now = state()
        return _unseen(now, derive(revised(now, find_plan(now, plan_id), args, fresh)), "revised")

    summary = (
        "change a plan by plan_id: steps, each {step_id (keeps it) or name, description, depends_on}, or goal"
    )
    return Tool(operation="plan_tool.revise", args=RevisePlan, summary=summary, effect="read", run=run)


def _delete_tool(state: State) -> Tool:
    async def run(args: DeletePlan, _access: Access) -> ToolResult:
        now = state()
        plan = find_plan(now, args.plan_id)
        check_not_under_way(now, *plan.steps)
        return ToolResult(
            text=f"deleted {plan.plan_id} ({plan.name})", events=(PlanChanged(plan=plan, change="deleted"),)
        )

    summary = "remove the plan plan_id, no files"
    return Tool(operation="plan_tool.delete", args=DeletePlan, summary=summary, effect="read", run=run)


def _unseen(now: AgentState, plan: Plan, change: Literal["proposed", "revised"]) -> ToolResult:
    """Return a plan that the user has not seen, and ask at once if the mode or the risk requires it (B7)."""
    asks = now.mode == "ask" or plan.risk == "high"
    ask = Action(operation=APPROVE, args={"plan_id": plan.plan_id}, reasoning=plan.goal)
    last = "The user is asked to approve it now." if asks else _next(plan)
    return ToolResult(
        text=f"{plan_text(plan)}{last}",
        events=(PlanChanged(plan=plan, change=change),),
        then=(ask,) if asks else (),
    )


def _next(plan: Plan) -> str:
    step = plan.current
    return (
        f"Next: task_tool.generate_list for {step.step_id} ({step.name})." if step else "No step can start."
    )
