"""Tools agent.explore and agent.work: helpers of the model, each on its own copy of the folder (O1, O2)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator

from duckflow.agents.joining import Conflict
from duckflow.agents.report import AgentReport
from duckflow.agents.team import Assignment, Keep, Team, TeamOutcome
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.extensions import CustomAgent
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import line
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut, head_and_tail, some_of
from duckflow.domain.work.agents import AgentKind
from duckflow.pacemaker.shares import Share
from duckflow.safety.files.access import Access
from duckflow.tools.catalogue import TakeOver, Tool, ToolResult
from duckflow.tools.plans.plan_search import StateOwner, check_may_start, check_not_under_way, find_step

EXPLORE, WORK = "agent.explore", "agent.work"

_MOST_AGENTS = 8
_TRIES = 3
_FINDINGS, _REPLY = 3_000, 600

Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class AskAgents(Frozen):
    """Arguments of agent.explore."""

    questions: tuple[Text, ...] = Field(
        min_length=1, max_length=_MOST_AGENTS, description="one for each agent"
    )
    agent: str = Field(default="", description="name of a custom agent")


class AgentTask(Frozen):
    """One task of agent.work."""

    task: str = Field(
        default="",
        max_length=20_000,
        description="all the agent needs to know: files, purpose, how to check it",
    )
    step_id: str = Field(default="", description="step of a plan that this is; it needs no task in words")
    name: str = Field(default="", max_length=40, description="short name")
    agent: str = Field(default="", description="name of a custom agent")
    check: str = Field(
        default="", max_length=2_000, description="command that must succeed, such as its tests"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_words(cls, given: object) -> object:
        """Accept a task in plain words, as models write it."""
        return {"task": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _something(self) -> "AgentTask":
        if not self.task.strip() and not self.step_id:
            raise ValueError("task or step_id is needed")
        return self


class SetToWork(Frozen):
    """Arguments of agent.work."""

    tasks: tuple[AgentTask, ...] = Field(min_length=1, max_length=_MOST_AGENTS)
    keep: Keep = Field(default="all", description="best: several tries at one task")
    tries: int = Field(default=_TRIES, ge=2, le=_MOST_AGENTS, description="with keep=best")


class UsualCheck(NamedTuple):
    """Check of tasks that name none: what the user set, or the tests found in the project."""

    command: str = ""
    found: bool = False


def agent_tools(
    team: Team,
    session: StateOwner,
    share: Callable[[int], Share],
    find_check: Callable[[], Awaitable[UsualCheck]],
    customs: Mapping[str, CustomAgent],
) -> tuple[Tool[Any], ...]:
    """Return the tools of a team. `share` gives each of several agents its part of the budget.

    `find_check` returns the check by which attempts are compared.
    """

    async def explore(args: AskAgents, _access: Access) -> ToolResult:
        asked = [
            _assign(f"look {number}", question, "explores", args.agent, customs)
            for number, question in enumerate(args.questions, start=1)
        ]
        given = share(len(asked))
        reports = await team.explore(asked, given)
        found = [_findings(one.task, report) for one, report in zip(asked, reports, strict=True)]
        return ToolResult(text="\n\n".join(found), told=(given.reason,))

    async def work(args: SetToWork, _access: Access) -> ToolResult:
        if args.keep == "best" and len(args.tasks) != 1:
            raise ToolError('keep "best" takes one task, and makes several tries at it.')
        for one in args.tasks:
            _check_step(session.state, one.step_id)
        tasks = args.tasks * args.tries if args.keep == "best" else args.tasks
        names = _names(
            [one.name or _step_name(session.state, one) for one in tasks],
            "try" if args.keep == "best" else "part",
        )
        parts = [
            _assign(name, _task_text(session.state, one), "works", one.agent, customs)
            for name, one in zip(names, tasks, strict=True)
        ]
        usual = await find_check() if args.keep == "best" else UsualCheck()
        parts = [
            part._replace(check=one.check or usual.command, check_found=usual.found and not one.check)
            for part, one in zip(parts, tasks, strict=True)
        ]
        given = share(len(parts))
        outcome = await team.work(parts, given, args.keep)
        waiting = TakeOver(copy_id=outcome.copy_id) if outcome.copy_id else None
        told = [given.reason]
        told += [line("agents.chosen", name=outcome.chosen, tries=len(parts))] if outcome.chosen else []
        told += [line("agents.joined", paths=_paths(outcome.joined))] if outcome.joined else []
        told += [line("agents.left", paths=_paths(outcome.conflicts))] if outcome.conflicts else []
        then = tuple(map(_completing, _completed(args, outcome)))
        return ToolResult(
            text=_outcome_text(outcome), told=tuple(told), waiting=waiting, exact=True, then=then
        )

    names = f" Custom agents: {', '.join(customs)}." if customs else ""
    return (
        Tool(
            operation=EXPLORE,
            args=AskAgents,
            summary="agents look for answers in the folder at the same time, and give findings with file and "
            f"line; for several wide questions.{names}",
            effect="read",
            run=explore,
        ),
        Tool(
            operation=WORK,
            args=SetToWork,
            summary="agents do independent parts of the work, or steps of a plan, at the same time, each on "
            f"a copy; their changes are joined, or the best of several tries is kept.{names}",
            effect="execute",
            run=work,
        ),
    )


def _check_step(state: AgentState, step_id: str) -> None:
    """Refuse a step that can't start, because it depends on others or a plan needs approval."""
    if step_id:
        plan, step = find_step(state, step_id)
        check_may_start(plan, step)
        check_not_under_way(state, step)


def _step_name(state: AgentState, task: AgentTask) -> str:
    return cut(find_step(state, task.step_id)[1].name, 40) if task.step_id else ""


def _task_text(state: AgentState, task: AgentTask) -> str:
    """Return the task in words; for a step of a plan, with its description and the goal."""
    if not task.step_id:
        return task.task
    plan, step = find_step(state, task.step_id)
    return "\n".join(
        part
        for part in (step.name, step.description, task.task, f"It is one step of a plan for: {plan.goal}")
        if part
    )


def _completed(args: SetToWork, outcome: TeamOutcome) -> list[str]:
    """Return the ids of the plan steps that agents have done, if everything they changed was kept."""
    lost = {one.name for one in outcome.conflicts}
    if args.keep == "best":
        done = [one.outcome == "done" for one in outcome.reports if one.name == outcome.chosen]
        return [one.step_id for one in args.tasks if one.step_id and any(done)]
    reports = zip(args.tasks, outcome.reports, strict=True)
    return [
        task.step_id
        for task, one in reports
        if task.step_id and one.outcome == "done" and one.name not in lost
    ]


def _completing(step_id: str) -> Action:
    return Action(
        operation="plan_tool.update_step", args={"step_id": step_id, "status": "completed"}, reasoning=""
    )


def _assign(
    name: str, task: str, kind: AgentKind, agent: str, customs: Mapping[str, CustomAgent]
) -> Assignment:
    custom = customs.get(agent)
    if agent and custom is None:
        known = ", ".join(customs) or "none"
        raise ToolError(f"There is no custom agent {agent[:60]}. There are: {known}.")
    if custom is None:
        return Assignment(name, task, kind)
    kind = "explores" if custom.only_reads else kind
    return Assignment(name, task, kind, custom.instructions, custom.model)


def _names(wanted: Sequence[str], usual: str) -> list[str]:
    """Return a different name for each agent."""
    return [
        one if one and wanted.count(one) == 1 else f"{one or usual} {number}"
        for number, one in enumerate(wanted, start=1)
    ]


def _findings(question: str, report: AgentReport) -> str:
    said = head_and_tail(report.reply, _FINDINGS) or f"(no answer: {report.outcome}. {report.problem})"
    return f"## {question}\n{said}"


def _outcome_text(outcome: TeamOutcome) -> str:
    parts = [_report_text(report) for report in outcome.reports]
    if outcome.chosen:
        parts.append(f"{outcome.chosen} was chosen; the changes of the others are discarded.")
    if outcome.joined:
        parts.append(f"Changes to the same places were joined by an agent: {_paths(outcome.joined)}.")
    parts += [
        f"Not joined, do it yourself: {one.path}, "
        + (f"where {one.name} wanted:\n{one.hunks}" if one.hunks else f"{one.name} {one.did}")
        for one in outcome.conflicts
    ]
    if not outcome.copy_id:
        parts.append("They changed nothing.")
    return "\n\n".join(parts)


def _report_text(report: AgentReport) -> str:
    score = "" if report.satisfaction is None else f", satisfied {report.satisfaction:.0%}"
    checks = (
        f", checks: {report.passed} passed, {report.failed} failed" if report.passed + report.failed else ""
    )
    lines = [f"## {report.name}: {report.outcome}{score}{checks}, {report.loops} loops"]
    lines += [f"missing: {some_of(report.missing)}"] if report.missing else []
    told = report.problem and not report.missing and report.outcome != "done"
    lines += [f"problem: {report.problem}"] if told else []
    lines += [head_and_tail(report.reply, _REPLY)] if report.reply else []
    return "\n".join(lines)


def _paths(conflicts: Sequence[Conflict]) -> str:
    return some_of(dict.fromkeys(one.path for one in conflicts))
