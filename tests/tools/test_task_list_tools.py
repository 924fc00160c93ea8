"""task_tool and task_loop: lists are generated, checked and handed on (B3, B4, B7)."""

# ruff: noqa: E501 - a snapshot is as long as what it holds

import pytest
from inline_snapshot import snapshot

from duckflow.domain.decision import Action
from duckflow.domain.errors import BadAnswer, ToolError
from duckflow.domain.events import PlanChanged
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.plans import change_plan
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Task
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.plans.task_lists import task_tools
from duckflow.tools.toolset import file_tools
from fakes.plans import plan, planned, step, tasks

GAME = plan(step("a"), step("b", "a"))
READ = {"operation": "file_ops.read_file", "args": {"path": "a.py"}}


class Bench:
    """The task tools over a state, with a list a model would write and a loop that only remembers."""

    def __init__(self, folder, state: AgentState, *drafted: Task | Exception) -> None:
        self.state = state
        self.started: list[tuple[tuple[Task, ...], str | None]] = []
        self.asked: list[tuple[str, str]] = []
        self.meanwhile = lambda: None
        self.runs = False
        self._drafted = drafted or tasks("pending", "pending", of="n")
        background = Catalogue(file_tools(None))
        made = task_tools(self, self._draft, self, background)
        self.catalogue = Catalogue(made)

    async def _draft(self, of, one):
        self.asked.append((of.plan_id, one.step_id))
        self.meanwhile()
        if isinstance(self._drafted[0], Exception):
            raise self._drafted[0]
        return tuple(self._drafted)

    def start(self, given, step_id):
        self.started.append((given, step_id))
        return "list_7"

    def cancel(self):
        return self.runs

    async def call(self, operation: str, **args):
        tool, valid = self.catalogue.validate(Action(operation=operation, args=args))
        result = await tool.run(valid, None)
        for event in result.events:
            self.state = change_plan(self.state, event)
        return result

    async def refusal(self, operation: str, **args) -> str:
        before = self.state
        with pytest.raises(ToolError) as error:
            await self.call(operation, **args)
        assert self.state is before
        assert self.started == []
        return str(error.value)

    def step(self, name: str):
        return self.state.plans[0].step(f"step_{name}")


@pytest.fixture
def bench(tmp_path):
    return lambda state, *drafted: Bench(tmp_path, state, *drafted)


async def test_generate_list_saves_the_tasks_on_the_step_and_runs_nothing_B3(bench):
    tools = bench(planned(GAME))
    result = await tools.call("task_tool.generate_list", step_id="step_a")
    assert tools.asked == [("plan_1", "step_a")]
    assert [task.task_id for task in tools.step("a").task_list] == ["task_n1", "task_n2"]
    assert tools.step("a").status == "pending"
    assert tools.started == []
    (event,) = result.events
    assert (type(event), event.change) == (PlanChanged, "tasks")
    assert "2 tasks for step_a (Step a), none has run yet" in result.text
    assert "task_n1 [pending] file_ops.read_file" in result.text
    assert "task_loop.run, step_id step_a" in result.text


async def test_a_list_may_be_written_before_its_step_can_start_B3(bench):
    tools = bench(planned(GAME))
    await tools.call("task_tool.generate_list", step_id="step_b")
    assert len(tools.step("b").task_list) == 2


async def test_what_happens_while_the_model_writes_is_kept_C2(bench):
    before = plan(step("a", task_list=tasks("pending")), step("b"))
    tools = bench(planned(before))
    after = plan(step("a", task_list=tasks("completed")), step("b"))
    tools.meanwhile = lambda: setattr(tools, "state", planned(after))
    await tools.call("task_tool.generate_list", step_id="step_b")
    assert tools.step("a").status == "completed"
    assert len(tools.step("b").task_list) == 2


async def test_a_failed_step_gets_a_new_list_and_waits_again_B4(bench):
    tools = bench(planned(plan(step("a", task_list=tasks("completed", "failed")))))
    await tools.call("task_tool.generate_list", step_id="step_a")
    assert tools.step("a").status == "pending"


async def test_a_list_is_only_written_for_a_step_that_wants_one_B3(bench):
    complete = plan(step("a", status="completed"), step("b"))
    assert "step_a is complete" in await bench(planned(complete)).refusal(
        "task_tool.generate_list", step_id="step_a"
    )
    words = await bench(planned(GAME)).refusal("task_tool.generate_list", step_id="step_9")
    assert words == "There is no step step_9. Known: step_a (Step a), step_b (Step b)."
    words = await bench(planned(GAME, running="step_a")).refusal("task_tool.generate_list", step_id="step_a")
    assert "The tasks of step_a run in the background now" in words


async def test_a_list_with_a_task_that_can_t_be_called_is_not_kept_B3(bench):
    wrong = Task(task_id="task_1", operation="file_ops.read_file", args={"path": "a", "start": "x"})
    words = await bench(planned(GAME), wrong).refusal("task_tool.generate_list", step_id="step_a")
    assert (
        "Task 1: file_ops.read_file(path, start?, end?) can't be called so: `start`: must be a whole number"
        in words
    )


async def test_a_model_that_writes_no_list_costs_an_action_not_the_session_A6(bench):
    failure = BadAnswer("llm.bad_answer", output="TaskListDraft", problem="no tasks")
    assert "no tasks" in await bench(planned(GAME), failure).refusal(
        "task_tool.generate_list", step_id="step_a"
    )


async def test_run_hands_the_step_s_tasks_to_the_background_and_comes_back_A3(bench):
    listed = tasks("pending", "pending")
    tools = bench(planned(plan(step("a", task_list=listed))))
    result = await tools.call("task_loop.run", step_id=" step_a ")
    assert tools.started == [(tuple(replace(task, looks=True) for task in listed), "step_a")]
    assert result.text == "list_7 runs in the background: 2 tasks. A report follows when it has ended."
    assert result.events == ()


async def test_run_goes_on_where_a_list_stopped_C5(bench):
    failed = tasks("completed", "failed", "pending")
    tools = bench(planned(plan(step("a", task_list=failed))))
    await tools.call("task_loop.run", step_id="step_a")
    ((given, _),) = tools.started
    assert [(task.task_id, task.status, task.result) for task in given] == [
        ("task_x2", "pending", None),
        ("task_x3", "pending", None),
    ]


async def test_run_takes_a_list_of_the_model_s_own(bench):
    tools = bench(planned())
    await tools.call("task_loop.run", task_list=[READ, {"operation": "list_files"}])
    ((given, step_id),) = tools.started
    assert step_id is None
    assert [(task.operation, task.args) for task in given] == [
        ("file_ops.read_file", {"path": "a.py"}),
        ("file_ops.list_files", {}),
    ]
    assert len({task.task_id for task in given}) == 2


async def test_run_takes_a_list_of_the_model_s_own_for_a_step_B4(bench):
    tools = bench(planned(plan(step("a", task_list=tasks("completed", "failed")))))
    await tools.call("task_loop.run", step_id="step_a", task_list=[READ])
    ((given, step_id),) = tools.started
    assert step_id == "step_a"
    assert [(task.operation, task.status, task.looks) for task in given] == [
        ("file_ops.read_file", "pending", True)
    ]
    complete = bench(planned(plan(step("a", task_list=tasks("completed")))))
    words = await complete.refusal("task_loop.run", step_id="step_a", task_list=[READ])
    assert "step_a is complete. For more work, open it again" in words


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "step_id or task_list is needed"),
        (
            {"step_id": "step_b", "task_list": [READ]},
            "step_b can't start before what it depends on is complete: step_a (Step a: pending).",
        ),
        ({"step_id": "step_9"}, "There is no step step_9. Known: step_a (Step a), step_b (Step b)."),
        ({"step_id": "step_a"}, "step_a has no tasks. Call task_tool.generate_list for step_a first."),
        (
            {"step_id": "step_b"},
            "step_b can't start before what it depends on is complete: step_a (Step a: pending).",
        ),
        ({"task_list": []}, "`task_list` must have 1 to 20 items, not 0"),
        ({"task_list": [READ] * 21}, "`task_list` must have 1 to 20 items, not 21"),
        ({"task_list": [{"args": {}}]}, "`task_list[0].operation` is missing"),
        ({"task_list": [READ, {"operation": "fly"}]}, "Task 2: There is no operation fly."),
        (
            {"task_list": [{"operation": "file_ops.read_file"}]},
            "Task 1: file_ops.read_file(path, start?, end?) can't be called so: `path` is missing.",
        ),
        (
            {"task_list": [{"operation": "task_loop.run", "args": {"step_id": "a"}}]},
            "Task 1: task_loop.run can't be a task",
        ),
        ({"task_list": [{"operation": " plan_tool.approve"}]}, "plan_tool.approve can't be a task"),
        (
            {"task_list": [{"operation": "task_tool.generate_list"}]},
            "task_tool.generate_list can't be a task",
        ),
    ],
)
async def test_what_can_t_run_is_refused_by_name_B4(bench, args, words):
    assert words in await bench(planned(GAME)).refusal("task_loop.run", **args)


async def test_a_step_that_is_done_is_not_run_again(bench):
    tools = bench(planned(plan(step("a", task_list=tasks("completed")))))
    assert "All tasks of step_a are complete" in await tools.refusal("task_loop.run", step_id="step_a")


async def test_one_list_at_a_time_C1(bench):
    tools = bench(planned(plan(step("a"), step("b", task_list=tasks("pending"))), running="step_a"))
    for args in ({"step_id": "step_b"}, {"task_list": [READ]}):
        assert "list_1 is still under way" in await tools.refusal("task_loop.run", **args)


@pytest.mark.parametrize("operation", ["task_tool.generate_list", "task_loop.run"])
async def test_no_step_of_high_risk_starts_before_the_user_s_yes_B7(bench, operation):
    risky = plan(step("a", task_list=tasks("pending")), risk="high")
    words = await bench(planned(risky)).refusal(operation, step_id="step_a")
    assert words == snapshot(
        "plan_1 has high risk and the user has not approved it: no step of it can start. Call plan_tool.approve, which asks the user."
    )
    approved = bench(planned(risky.model_copy(update={"approved": True})))
    await approved.call(operation, step_id="step_a")


async def test_a_bare_name_does_not_smuggle_in_what_can_t_be_a_task(bench):
    """Even where the whole catalogue is given as the one for the background."""
    tools = bench(planned(GAME))
    whole = Catalogue(tools.catalogue.tools)
    tools.catalogue = Catalogue(task_tools(tools, tools._draft, tools, whole))
    words = await tools.refusal(
        "task_loop.run", task_list=[{"operation": "generate_list", "args": {"step_id": "x"}}]
    )
    assert "task_tool.generate_list can't be a task" in words


@pytest.mark.parametrize(
    ("runs", "words"), [(True, "The list in the background is being stopped."), (False, "No list runs.")]
)
async def test_cancel_says_whether_there_was_something_to_stop_C4(bench, runs, words):
    tools = bench(planned())
    tools.runs = runs
    assert (await tools.call("task_loop.cancel")).text == words


def test_what_the_prompt_says_of_task_lists(bench):
    assert tuple(tool.line for tool in bench(planned()).catalogue.tools) == snapshot(
        (
            "task_tool.generate_list(step_id): write the tasks of the step step_id; runs nothing",
            "task_loop.run(step_id?, task_list?): run in the background the tasks of step_id, or task_list, a list of {operation, args}",
            "task_loop.cancel(): stop that list",
        )
    )


def test_every_argument_of_a_task_tool_is_named_and_described(bench):
    for tool in bench(planned()).catalogue.tools:
        assert tool.effect == "read"
        for name, field in tool.args.model_fields.items():
            assert name in tool.summary, tool.operation
            assert field.description, tool.operation
        assert not any(word in str(tool.schema()) for word in ("maxLength", "minLength", "maxItems", "null"))
