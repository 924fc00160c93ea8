"""Tools of plan_tool: plans are proposed, read, approved by the user, updated and deleted (B2, B4, B7).

Each tool reads the state and returns changes as events; none of them writes.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, get_args

from pydantic import Field, field_validator

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import PlanChanged
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, WorkStatus, derive, progress
from duckflow.i18n.plans import plan_in_words
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import NoArguments, Proposal, Tool, ToolResult
from duckflow.tools.plans.plan_revision import RevisePlan, revised
from duckflow.tools.plans.plan_search import (
    StateOwner,
    check_may_start,
    check_not_under_way,
    drafted,
    find_plan,
    find_step,
    plan_text,
    with_step,
    work_tool,
)

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


def plan_tools(session: StateOwner, draft: Callable[[str], Awaitable[Plan]]) -> tuple[Tool[Any], ...]:
    """Return the plan tools of a session. `draft` asks a model for a plan that reaches a goal."""

    async def propose(args: ProposePlan, _access: Access) -> ToolResult:
        plan = derive(await drafted("plan", draft(args.goal)))
        return _unseen(session.state, plan, "proposed")

    async def show(args: AnyPlan, _access: Access) -> ToolResult:
        return ToolResult(text=plan_text(find_plan(session.state, args.plan_id)))

    async def list_all(_args: NoArguments, _access: Access) -> ToolResult:
        state = session.state
        lines = [
            f"{progress(plan)}{' [in hand]' if plan.plan_id == state.active_plan_id else ''}"
            for plan in state.plans
        ]
        return ToolResult(text="\n".join(lines) or "There are no plans.")

    async def propose_approval(args: AnyPlan, _workspace: Workspace) -> Proposal:
        plan = find_plan(session.state, args.plan_id)
        return Proposal("" if plan.approved else plan_in_words(plan))

    async def approve(args: AnyPlan, _access: Access) -> ToolResult:
        plan = find_plan(session.state, args.plan_id)
        if plan.approved:
            return ToolResult(text=f"The user approved {plan.plan_id} before.")
        approved = derive(replace(plan, approved=True))
        text = f"The user approved {plan.plan_id}.\n{_next(approved)}"
        return ToolResult(text=text, events=(PlanChanged(plan=approved, change="approved"),))

    async def update_step(args: UpdateStep, _access: Access) -> ToolResult:
        plan, step = find_step(session.state, args.step_id)
        check_not_under_way(session.state, step)
        if step.task_list and args.status != "pending" and not step.only_looked:
            raise ToolError(
                f"{step.step_id} has tasks: its status follows from them and is {step.status}. "
                "Status pending opens it again, without tasks."
            )
        if args.status in ("in_progress", "completed"):
            check_may_start(plan, step)
        after = with_step(plan, replace(step, status=args.status, task_list=()))
        return ToolResult(text=progress(after), events=(PlanChanged(plan=after, change="step"),))

    async def revise(args: RevisePlan, _access: Access) -> ToolResult:
        plan_id = find_plan(session.state, args.plan_id).plan_id
        fresh = await drafted("plan", draft(args.goal or "")) if args.steps is None else None
        # Read the state again, because background tasks of this plan may have finished meanwhile.
        state = session.state
        return _unseen(state, derive(revised(state, find_plan(state, plan_id), args, fresh)), "revised")

    async def delete(args: DeletePlan, _access: Access) -> ToolResult:
        state = session.state
        plan = find_plan(state, args.plan_id)
        check_not_under_way(state, *plan.steps)
        deleted = PlanChanged(plan=plan, change="deleted")
        return ToolResult(text=f"deleted {plan.plan_id} ({plan.name})", events=(deleted,))

    drafts = "draft a plan for long work and ask the user to approve it; goal says what it must reach"
    shows = "a plan by plan_id, or the one in hand, with steps and tasks"
    updates = f"set the status ({', '.join(get_args(WorkStatus))}) of step_id; pending opens it again"
    revises = "steps, each {step_id (keeps it) or name, description, depends_on}, or goal"
    approving = Tool(
        operation=APPROVE,
        args=AnyPlan,
        summary="ask the user to approve a plan by plan_id; high risk needs it",
        effect="consent",
        run=approve,
        propose=propose_approval,
    )
    return (
        work_tool("plan_tool.propose", ProposePlan, propose, drafts),
        work_tool("plan_tool.get", AnyPlan, show, shows),
        work_tool("plan_tool.list", NoArguments, list_all, "all plans, a line each"),
        approving,
        work_tool("plan_tool.update_step", UpdateStep, update_step, updates),
        work_tool(
            "plan_tool.revise", RevisePlan, revise, f"change a plan by plan_id and ask again: {revises}"
        ),
        work_tool("plan_tool.delete", DeletePlan, delete, "remove the plan plan_id, no files"),
    )


def _unseen(now: AgentState, plan: Plan, change: Literal["proposed", "revised"]) -> ToolResult:
    """Return a plan, followed by a request for the user's approval if the mode or the risk needs it (B7)."""
    asks = now.mode == "ask" or plan.risk == "high"
    ask = Action(operation=APPROVE, args={"plan_id": plan.plan_id}, reasoning="")
    last = "The user is asked to approve it now." if asks else _next(plan)
    return ToolResult(
        text=f"{plan_text(plan)}{'Earlier plans no longer count. ' if now.plans else ''}{last}",
        events=(PlanChanged(plan=plan, change=change, asks=asks),),
        then=(ask,) if asks else (),
    )


def _next(plan: Plan) -> str:
    step = plan.current or next((one for one in plan.steps if one.status == "failed"), None)
    if step is None:
        return "No step can start."
    return (
        f"Next: task_tool.generate_list for {step.step_id} ({step.name}), "
        "or do it yourself and set it completed with plan_tool.update_step."
    )
