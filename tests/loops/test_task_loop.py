"""The background: tasks run while the chat continues, and both loops share one state."""

import asyncio
import json
from pathlib import Path
from typing import Any

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    DecisionMade,
    PlanChanged,
    Reply,
    TaskFinished,
    TaskListStarted,
    TaskReported,
    UsageReported,
    UserMessage,
)
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, PlanStep
from duckflow.safety.files.access import Access
from duckflow.tools.catalogue import Tool, ToolResult
from fakes.engine import Watched, action, decision, engine
from fakes.gate import Gate as ModelGate
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play
from fakes.sent_prompts import written


def run_tasks(*tasks: dict[str, Any], **fields: Any) -> str:
    """A decision that hands tasks to the background and waits for their report."""
    call = {"operation": "task_loop.run", "args": {"task_list": list(tasks)}}
    return decision("I do that in the background.", call, next_step="defer", **fields)


def report(status: str = "success", **fields: Any) -> dict[str, Any]:
    body = {"status": status, "summary": "All went well.", "failures": [], "next_action": "", **fields}
    return {"for": "TaskReport", "text": json.dumps(body)}


class Gate:
    """A tool that waits until it is let through, so that a test decides when a task ends."""

    def __init__(self, duck: Watched) -> None:
        self.entered, self.open, self.stopped = asyncio.Event(), asyncio.Event(), False
        dispatcher = duck.app.tasks._dispatcher
        tools = {tool.operation: tool for tool in dispatcher._catalogue.tools}
        plain = tools["file_ops.write_file"]

        async def run(args: Any, access: Access) -> ToolResult:
            self.entered.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.stopped = True
                raise
            return await plain.run(args, access)

        slow = Tool(**{**plain.__dict__, "run": run})
        dispatcher._catalogue._by_operation["file_ops.write_file"] = slow


async def ended(duck: Watched) -> None:
    await duck.app.session.wait_until(lambda state: not state.background_runs)


WRITE_A = action("write_file", path="a.txt", content="a\n")
WRITE_B = action("write_file", path="b.txt", content="b\n")


async def test_a_list_runs_in_the_background_and_is_reported(folder: Path):
    """A3, C1, C3: handed over, run in order, reported by the fast tier."""
    async with engine(folder, run_tasks(WRITE_A, WRITE_B), report(), decision("Both are there.")) as duck:
        assert await duck.app.chat.say("write both") == "deferred"
        await ended(duck)
        assert await duck.app.chat.go_on() == "done"
        assert len(duck.of(TaskListStarted)) == 1
        assert [task.status for task in duck.of(TaskFinished)] == ["completed", "completed"]
        (told,) = duck.of(TaskReported)
        assert (told.status, told.completed, told.failed, told.summary) == ("success", 2, 0, "All went well.")
        assert any("Task report (success" in entry.text for entry in duck.state.transcript)
        tiers = [usage.tier for usage in duck.of(UsageReported) if usage.output in ("Decision", "TaskReport")]
        assert tiers == ["creative", "fast", "creative"]
    assert (folder / "b.txt").read_text() == "b\n"


async def test_C1_the_chat_answers_while_tasks_run(folder: Path):
    answers = [run_tasks(WRITE_A), decision("Paris."), report(), decision("Done.")]
    async with engine(folder, *answers) as duck:
        gate = Gate(duck)
        await duck.app.chat.say("write a")
        await gate.entered.wait()
        assert await duck.app.chat.say("What is the capital of France?") == "deferred"
        assert duck.of(Reply)[-1].text == "Paris."
        assert duck.state.background_runs
        gate.open.set()
        await ended(duck)
        assert await duck.app.chat.go_on() == "done"


async def test_C1_instructions_given_meanwhile_reach_the_next_decision(folder: Path):
    answers = [run_tasks(WRITE_A), decision("Noted.", next_step="defer"), report(), decision("Done.")]
    async with engine(folder, *answers) as duck:
        gate = Gate(duck)
        await duck.app.chat.say("write a")
        await gate.entered.wait()
        await duck.app.chat.say("and use tabs")
        gate.open.set()
        await ended(duck)
        said = [entry.text for entry in duck.state.transcript]
        assert said.index("and use tabs") < next(i for i, t in enumerate(said) if "Task report" in t)


async def test_C3_a_report_from_the_facts_when_the_model_fails(folder: Path):
    fault = {"for": "TaskReport", "error": 500}
    async with engine(folder, run_tasks(WRITE_A), fault, decision("ok")) as duck:
        await duck.app.chat.say("write a")
        await ended(duck)
        (told,) = duck.of(TaskReported)
        assert (told.status, told.completed) == ("success", 1)
        assert "1 of 1 tasks completed" in told.summary


async def test_A4_a_failed_task_ends_the_list_and_the_rest_stays_pending(folder: Path):
    missing = action("read_file", path="missing.txt")
    answers = [run_tasks(WRITE_A, missing, WRITE_B), report("partial"), decision("ok")]
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("go")
        await ended(duck)
        (told,) = duck.of(TaskReported)
        assert (told.completed, told.failed, told.pending) == (1, 1, 1)
        assert "missing.txt" in told.failures[0]
    assert not (folder / "b.txt").exists()


async def test_B4_a_failing_test_stops_the_list_before_the_commit_and_leaves_its_step_open(folder: Path):
    """C3: the report sees the end of the test's output, although the test also left a file behind."""
    long = "print('dots ' * 2000); print('FAILED test_win'); open('log', 'w').write('x'); raise SystemExit(1)"
    test = {"operation": "shell.run", "args": {"command": f'python3 -c "{long}"'}}
    commit = {"operation": "shell.run", "args": {"command": "echo done > committed"}}
    async with engine(folder, mode="edits") as duck:
        plan = Plan(
            plan_id="plan_1", name="p", goal="g", steps=(PlanStep(step_id="s1", name="n", description="d"),)
        )
        duck.app.session.record(PlanChanged(plan=plan, change="proposed"))
        session_id = duck.state.session_id
    run = {"operation": "task_loop.run", "args": {"step_id": "s1", "task_list": [WRITE_A, test, commit]}}
    answers = [
        decision("", run, next_step="defer"),
        report("partial"),
        decision("ok", next_step="pending_user"),
    ]
    async with engine(folder, *answers, mode="edits", session=session_id) as duck:
        assert await duck.app.chat.say("go") == "deferred"
        await ended(duck)
        (told,) = duck.of(TaskReported)
        assert (told.completed, told.failed, told.pending) == (1, 1, 1)
        assert "FAILED test_win" in told.failures[0]
        assert "FAILED test_win" in duck.state.task_list.tasks[1].result
        assert [one.status for one in duck.state.active_plan.steps] == ["failed"]
    assert not (folder / "committed").exists()


async def test_C4_cancelling_stops_the_tool_and_leaves_the_rest_pending(folder: Path):
    async with engine(folder, run_tasks(WRITE_A, WRITE_B), decision("I stopped it.")) as duck:
        gate = Gate(duck)
        await duck.app.chat.say("go")
        await gate.entered.wait()
        assert duck.app.tasks.cancel()
        await ended(duck)
        assert gate.stopped
        (told,) = duck.of(TaskReported)
        assert (told.status, told.failed, told.pending) == ("cancelled", 1, 1)
        tasks = duck.state.task_list.tasks
        assert [(task.status, task.result) for task in tasks] == [("failed", "cancelled"), ("pending", None)]
        assert not duck.app.tasks.cancel()
    assert not (folder / "a.txt").exists()


async def test_C1_the_model_sees_a_report_that_came_while_it_answered(folder: Path, tmp_path: Path):
    """Its answer said done, but not of what the report says."""
    gate = ModelGate(tmp_path / "gate")
    call = {"operation": "task_loop.run", "args": {"task_list": [WRITE_A]}}
    answers = [decision("", call), gate.hold(decision("It runs.")), report(), decision("Done.")]
    async with engine(folder, *answers) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("write a"))
        await gate.wait_until_asked()
        await ended(duck)
        gate.open()
        assert await work == "done"
        assert len(duck.of(DecisionMade)) == 3


async def test_C1_an_approval_of_the_background_is_asked_in_the_chat_while_the_list_waits(folder: Path):
    answers = [run_tasks(WRITE_A, WRITE_B), decision("Hello."), report(), decision("Done.")]
    async with engine(folder, *answers, mode="ask") as duck:
        await duck.app.chat.say("write both")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        assert duck.state.approval.task_id is not None
        assert await duck.app.chat.say("hello") == "deferred"
        assert duck.state.approval is not None, "a message does not answer the background"
        await duck.app.chat.answer(AnswerApproval(yes=True))
        await duck.app.session.wait_until(
            lambda state: state.approval is not None or not state.background_runs
        )
        assert (folder / "a.txt").exists()
        await duck.app.chat.answer(AnswerApproval(yes=False, reason="one is enough"))
        await ended(duck)
        assert [task.status for task in duck.of(TaskFinished)] == ["completed", "failed"]
        assert "one is enough" in duck.of(TaskFinished)[-1].result
    assert not (folder / "b.txt").exists()


async def test_C4_a_cancelled_list_withdraws_its_question_which_is_no_answer_of_the_user(folder: Path):
    async with engine(folder, run_tasks(WRITE_A), decision("Stopped."), mode="ask") as duck:
        await duck.app.chat.say("write a")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        assert duck.app.tasks.cancel()
        await ended(duck)
        assert duck.state.approval is None
        assert (duck.of(ApprovalAnswered), duck.state.refused, duck.state.asks_instead) == ([], (), False)
        assert duck.of(TaskReported)[0].status == "cancelled"


async def test_the_chats_own_question_waits_until_that_of_the_background_is_answered(folder: Path):
    own = decision("", action("write_file", path="c.txt", content="c\n"), next_step="defer")
    answers = [run_tasks(WRITE_A), own, report(), decision("Done.")]
    async with engine(folder, *answers, mode="ask") as duck:
        await duck.app.chat.say("write a")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        assert await duck.app.chat.say("and c") == "awaiting_approval"
        assert duck.state.approval.task_id is not None
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert duck.state.approval.task_id is None
        await duck.app.chat.answer(AnswerApproval(yes=True))
        await ended(duck)
    assert (folder / "a.txt").exists()
    assert (folder / "c.txt").exists()


async def test_C5_a_list_that_waited_for_an_answer_goes_on_after_a_restart(folder: Path):
    async with engine(folder, run_tasks(WRITE_A), mode="ask") as duck:
        await duck.app.chat.say("write a")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        session_id = duck.state.session_id
    async with engine(folder, report(), decision("Done."), mode="ask", session=session_id) as duck:
        assert duck.state.approval is not None
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "deferred"
        await ended(duck)
        assert await duck.app.chat.go_on() == "done"
    assert (folder / "a.txt").exists()


async def test_C5_a_list_that_ran_at_a_crash_is_told_as_it_is_known_and_not_run_again(folder: Path):
    async with engine(folder, run_tasks(WRITE_A, WRITE_B)) as duck:
        Gate(duck)
        await duck.app.chat.say("go")
        await duck.app.session.wait_until(lambda state: state.task_running is not None)
        session_id = duck.state.session_id
        duck.app.tasks._work.cancel()  # as a kill: nothing is written down
        duck.app.session.record = lambda *_: None
    async with engine(folder, decision("I see."), session=session_id) as duck:
        assert duck.of(ActionFinished)[0].outcome == "failed", "the files show that it had not begun"
        (told,) = duck.of(TaskReported)
        assert (told.completed, told.failed, told.pending) == (0, 1, 1)
        assert not duck.state.background_runs
    assert list(folder.iterdir()) == []


async def test_C2_both_loops_always_read_the_newest_state(folder: Path):
    """1,000 interleaved changes: what one loop records the other has before its next await returns."""
    async with engine(folder) as duck:
        session = duck.app.session
        seen: list[int] = []

        async def loop(name: str) -> None:
            for number in range(500):
                before = session.state.seq
                session.record(Reply(text=f"{name} {number}"))
                assert session.state.seq == before + 1
                assert session.state.reply == f"{name} {number}"
                await asyncio.sleep(0)
                seen.append(session.state.seq)

        start = session.state.seq
        await asyncio.gather(loop("chat"), loop("task"))
        assert session.state.seq == start + 1000
        assert seen == sorted(seen)
        assert duck.app.tasks._session is duck.app.session


def plan_draft(*names: str, risk: str = "low") -> dict[str, Any]:
    steps = [{"name": name, "description": f"do {name}", "depends_on": []} for name in names]
    body = {"name": "Game", "goal": "a game", "risk": risk, "success_criteria": ["it runs"], "steps": steps}
    return {"for": "PlanDraft", "text": json.dumps(body)}


async def test_B6_make_a_game_from_the_first_word_to_the_report(folder: Path):
    """B2, B3, B5, B6, B7: plan, the user's own yes, task list, background, report."""
    step: dict[str, str] = {}

    def tasks_of(state: AgentState) -> str:
        step["id"] = state.active_plan.steps[0].step_id
        return step["id"]

    propose = decision("", {"operation": "plan_tool.propose", "args": {"goal": "make a game"}})
    async with engine(
        folder,
        propose,
        plan_draft("environment", "core", "polish"),
        decision("Here is the plan. Shall I?", next_step="pending_user"),
        mode="ask",
    ) as duck:
        assert await duck.app.chat.say("ゲームを実装して") == "awaiting_approval"
        assert duck.state.approval.action.operation == "plan_tool.approve"
        assert "environment" in duck.state.approval.difference
        assert duck.state.active_plan.status == "draft"
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert duck.state.active_plan.status == "approved"
        session_id, step_id = duck.state.session_id, tasks_of(duck.state)
    drafted = {
        "for": "TaskListDraft",
        "text": json.dumps({"tasks": [action("write_file", path="package.json", content="{}\n")]}),
    }
    generate = decision("", {"operation": "task_tool.generate_list", "args": {"step_id": step_id}})
    start = {"operation": "task_loop.run", "args": {"step_id": step_id}}
    run = decision("I begin.", start, next_step="defer")
    ended_well = decision("Step 1 is done. Go on with step 2?", next_step="pending_user")
    answers = [generate, drafted, run, report(), ended_well]
    async with engine(folder, *answers, mode="edits", session=session_id) as duck:
        assert await duck.app.chat.say("はい、お願いします") == "deferred"
        assert len(duck.of(PlanChanged)) >= 1
        await ended(duck)
        assert await duck.app.chat.go_on() == "pending_user"
        assert [one.status for one in duck.state.active_plan.steps] == ["completed", "pending", "pending"]
        assert duck.state.active_plan.status == "in_progress"
        assert len(duck.of(DecisionMade)) == 3
    assert (folder / "package.json").exists()


async def test_B3_content_written_by_earlier_lists_is_evidence_for_the_next_one(folder: Path):
    steps = tuple(PlanStep(step_id=f"step_{one}", name=one, description=one) for one in "ab")
    plan = Plan(plan_id="plan_1", name="p", goal="g", steps=steps)
    run = {"operation": "task_loop.run", "args": {"step_id": "step_a"}}

    def generate(step: str) -> str:
        return decision("", {"operation": "task_tool.generate_list", "args": {"step_id": step}})

    model = play(
        generate("step_a"),
        decision("", run, next_step="defer"),
        generate("step_b"),
        decision("ok", next_step="pending_user"),
        TaskListDraft=[
            {"tasks": [action("write_file", path="board.py", content="SIZE = 6\n")]},
            {"tasks": [action("read_file", path="board.py")]},
        ],
        TaskReport=[json.loads(report()["text"])],
    )
    with ModelServer(model) as server:
        async with engine(folder, server=server) as duck:
            duck.app.session.record(PlanChanged(plan=plan, change="proposed"))
            assert await duck.app.chat.say("go") == "deferred"
            await ended(duck)
            assert await duck.app.chat.go_on() == "pending_user"
        lists = [one.body for one in server.requests if asked_for(one.body) == "TaskListDraft"]
    assert "SIZE = 6" not in written(lists[0])
    assert "SIZE = 6" in written(lists[1])


async def test_B4_a_list_that_only_read_leaves_its_step_open_and_the_report_says_so(folder: Path):
    (folder / "a.txt").write_text("a\n")
    plan = Plan(
        plan_id="plan_1", name="p", goal="g", steps=(PlanStep(step_id="s1", name="n", description="d"),)
    )
    look = {"step_id": "s1", "task_list": [action("read_file", path="a.txt")]}
    run = decision("", {"operation": "task_loop.run", "args": look}, next_step="defer")
    complete = {"operation": "plan_tool.update_step", "args": {"step_id": "s1", "status": "completed"}}
    waits = decision("", complete, next_step="pending_user")
    async with engine(folder, run, report(), waits, decision("Hello.")) as duck:
        duck.app.session.record(PlanChanged(plan=plan, change="proposed"))
        await duck.app.chat.say("go")
        await ended(duck)
        assert duck.state.active_plan.steps[0].status == "in_progress"
        assert "The tasks only read, so their step is still open" in duck.state.transcript[-1].text
        await duck.app.chat.go_on()
        assert duck.state.active_plan.status == "completed"
        duck.app.session.record(UserMessage(request_id="r_next", text="something else"))
        assert duck.state.active_plan is None, "a plan that is done leaves the prompt with its request"
        assert [one.plan_id for one in duck.state.plans] == ["plan_1"]


async def test_B4_G8_an_undo_opens_the_tasks_whose_changes_are_gone(folder: Path):
    plan = Plan(
        plan_id="plan_1", name="p", goal="g", steps=(PlanStep(step_id="s1", name="n", description="d"),)
    )
    call = {"operation": "task_loop.run", "args": {"step_id": "s1", "task_list": [WRITE_A, WRITE_B]}}
    async with engine(folder, decision("", call, next_step="defer"), report(), decision("Done.")) as duck:
        duck.app.session.record(PlanChanged(plan=plan, change="proposed"))
        await duck.app.chat.say("go")
        await ended(duck)
        assert duck.state.active_plan.status == "completed"
        await duck.app.undoing.undo()
        (step,) = duck.state.active_plan.steps
        assert (step.status, [one.status for one in step.task_list]) == (
            "in_progress",
            ["completed", "pending"],
        )
        await duck.app.undoing.redo()
        assert duck.state.active_plan.status == "completed"
