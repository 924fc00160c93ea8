"""What the plan and task tools ask of models: a plan, the tasks of a step, a report; each with its tier."""

from collections.abc import Coroutine
from typing import TypeVar

from duckflow.domain.decision import Operation
from duckflow.domain.errors import ProviderError
from duckflow.domain.events import TaskReported
from duckflow.domain.model import Usage
from duckflow.domain.plan import Plan, PlanStep, Task, TaskList
from duckflow.llm.tiers import Tiers
from duckflow.loops.session import Session
from duckflow.loops.thinking.spending import Spending
from duckflow.prompts.plans import evidence_of, summary_of
from duckflow.services.decide import ModelCall
from duckflow.services.plans import draft_plan
from duckflow.services.reports import plain_report, write_report
from duckflow.services.task_lists import draft_tasks

T = TypeVar("T")


class Planning:
    """Asks with what the session knows, and writes down what that used."""

    def __init__(
        self, session: Session, tiers: Tiers, spending: Spending, operations: tuple[Operation, ...]
    ) -> None:
        self._session = session
        self._tiers = tiers
        self._spending = spending
        self._operations = operations

    async def plan(self, goal: str) -> Plan:
        """A plan that reaches the goal."""
        client = await self._tiers.client("creative")
        state = self._session.state
        with_usage = draft_plan(client, goal, summary_of(state), evidence_of(state), self._session.show)
        return await self._spent("PlanDraft", with_usage)

    async def tasks(self, plan: Plan, step: PlanStep) -> tuple[Task, ...]:
        """The tasks that do one step of a plan."""
        client = await self._tiers.client("creative")
        state = self._session.state
        known = summary_of(state), evidence_of(state)
        return await self._spent("TaskListDraft", draft_tasks(client, plan, step, *known, self._operations))

    async def report(self, task_list: TaskList) -> TaskReported:
        """What came of a list of tasks; from the facts alone where no model can be had."""
        try:
            client = await self._tiers.client("fast")
        except ProviderError:
            return plain_report(task_list)
        request = self._session.state.request
        report, tokens = await write_report(client, task_list, request.text if request else "")
        await self._spending.report("fast", ModelCall(output="TaskReport", tokens=tokens))
        return report

    async def _spent(self, output: str, asked: Coroutine[None, None, tuple[T, Usage]]) -> T:
        """The answer, with what it used written down, also where there is none."""
        try:
            answer, tokens = await asked
        except ProviderError as error:
            if error.usage is not None:
                await self._spending.report("creative", ModelCall(output=output, tokens=error.usage))
            raise
        await self._spending.report("creative", ModelCall(output=output, tokens=tokens))
        return answer
