"""The task loop: runs a list of tasks in the background while the chat continues."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duckflow.domain.events import ActionFinished, TaskFinished, TaskListStarted
from duckflow.domain.frozen import replace
from duckflow.domain.work.plan import Task, TaskList, new_id
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.session import SessionPart
from duckflow.loops.thinking.advisor import Advisor
from duckflow.services.task_lists import CANCELLED, plain_report, write_report
from duckflow.tools.shell import RUN


@dataclass(eq=False)
class TaskLoop(SessionPart):
    """Runs one task list at a time through the dispatcher."""

    _dispatcher: Dispatcher
    _advisor: Advisor
    _work: asyncio.Task[None] | None = None

    def start(self, tasks: tuple[Task, ...], step_id: str | None) -> str:
        """Start a task list in the background, and return its id."""
        fresh = (
            one if one.status == "completed" else replace(one, status="pending", result=None) for one in tasks
        )
        task_list = TaskList(list_id=new_id("list"), step_id=step_id, tasks=tuple(fresh))
        self._session.record(TaskListStarted(task_list=task_list))
        self._work = asyncio.create_task(self._run())
        return task_list.list_id

    def recover(self, ended: Sequence[ActionFinished] = ()) -> None:
        """After a restart, end the task list with these results, unless it waits for the user (C5)."""
        if not self._state.background_runs or self._asks():
            return
        found = {one.task_id: one for one in ended}
        for task in self._state.task_list.tasks if self._state.task_list else ():
            if task.status == "in_progress":
                one = found.get(task.task_id)
                text = one.text if one else "unknown: the program was stopped while it ran"
                self._finish(task, text, completed=one is not None and _succeeded((one,)))
        if self._state.task_list is not None:
            self._session.record(plain_report(self._state.task_list, cancelled=True))

    def go_on(self) -> None:
        """Continue a task list that waited for an answer during a restart."""
        if self._state.background_runs and self._work is None:
            self._work = asyncio.create_task(self._run())

    def _asks(self) -> bool:
        approval = self._state.approval
        return approval is not None and approval.task_id is not None

    def cancel(self) -> bool:
        """Cancel the list: its running task fails, later tasks stay pending. Return False if nothing runs."""
        if self._work is None or self._work.done():
            return False
        self._work.cancel(CANCELLED)
        return True

    async def wait(self) -> None:
        """Wait until the task list has ended or needs the user, or the user says something."""
        await self._session.wait_until(
            lambda state: (
                not state.background_runs or state.approval is not None or self._session.words is not None
            )
        )

    async def aclose(self) -> None:
        """Stop working. A task list that waits for the user stays open; otherwise it is cancelled."""
        work, self._work = self._work, None
        if work is None:
            return
        work.cancel() if self._asks() else work.cancel(CANCELLED)
        await asyncio.gather(work, return_exceptions=True)

    async def _run(self) -> None:
        try:
            declined = False
            while (task := self._next()) is not None:
                results = await self._dispatcher.run_task(task)
                declined = results[-1].declined is not None
                self._finish(task, "\n".join(one.text for one in results), completed=_succeeded(results))
            if self._state.task_list is not None and declined:
                self._session.record(plain_report(self._state.task_list))  # the user knows why
            elif self._state.task_list is not None:
                asked = self._state.request.text if self._state.request else ""
                self._session.record(await self._advisor.ask(write_report(self._state.task_list, asked)))
        except asyncio.CancelledError as stopped:
            if stopped.args == (CANCELLED,):
                self._give_up()
            raise
        finally:
            self._work = None

    def _next(self) -> Task | None:
        tasks = self._state.task_list.tasks if self._state.task_list else ()
        if any(task.status == "failed" for task in tasks):
            return None
        return next((task for task in tasks if task.status != "completed"), None)

    def _finish(self, task: Task, result: str, *, completed: bool) -> None:
        task_list = self._state.task_list
        self._session.record(
            TaskFinished(
                list_id=task_list.list_id if task_list else "",
                task_id=task.task_id,
                operation=task.operation,
                status="completed" if completed else "failed",
                result=result,
            )
        )

    def _give_up(self) -> None:
        """Record that the list was cancelled (C4). Not async, so that no other event can come in between."""
        if (task := self._next()) is not None:
            self._finish(task, CANCELLED, completed=False)
        if self._state.task_list is not None:
            self._session.record(plain_report(self._state.task_list, cancelled=True))


def _succeeded(results: Iterable[ActionFinished]) -> bool:
    """Return whether all actions of a task succeeded. A command must end, with exit code 0 (B4)."""
    return all(
        one.outcome == "ok"
        and not one.tests_failed
        and (one.exit_code == 0 or (one.exit_code is None and one.operation != RUN))
        for one in results
    )
