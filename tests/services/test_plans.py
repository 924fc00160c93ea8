"""Drafting a plan and the tasks of a step: what is asked, and what is refused by name (B2, B3)."""

import json
from functools import partial

import pytest

from duckflow.domain.decision import Operation
from duckflow.domain.errors import BadAnswer, ProviderError, ToolError
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import AgentState, Items, Request, TranscriptEntry
from duckflow.prompts.evidence import evidence_in
from duckflow.prompts.questions import summary_of
from duckflow.services.plans import draft_plan
from duckflow.services.questions import put
from duckflow.services.task_lists import draft_tasks
from fakes.cases import seen
from fakes.model import ONE_CALL, FakeModel
from fakes.plans import plan, step, tasks
from fakes.rows import every_row

OPERATIONS = tuple(
    Operation(name=name, line=f"{name}(path): …", schema=partial(dict, properties=known, required=needed))
    for name, known, needed in [
        ("file_ops.read_file", {"path": {}, "start": {}}, ["path"]),
        ("file_ops.write_file", {"path": {}, "content": {}}, ["path", "content"]),
        ("plan_tool.propose", {"goal": {}}, ["goal"]),
        ("task_tool.generate_list", {"step_id": {}}, ["step_id"]),
        ("task_loop.run", {"step_id": {}}, []),
    ]
)
WRITE = {"operation": "file_ops.write_file", "args": {"path": "a.py", "content": "x = 1\n"}}


def drafted(*needs, **fields):
    """A PlanDraft as a model writes it, a step for each list of places."""
    steps = [
        {"name": f"S{n}", "description": f"Do {n}", "depends_on": list(on)} for n, on in enumerate(needs, 1)
    ]
    body = {"name": "Game", "goal": "A game", "risk": "low", "success_criteria": ["`make run` exits with 0"]}
    return json.dumps({**body, "steps": steps, **fields})


GOOD = drafted([], [1], [1, 2])


async def plan_from(*answers, goal="Make a game"):
    model = FakeModel(*answers)
    made, usage = await put(model, draft_plan(goal, "", ()))
    return made, usage, model


async def test_a_draft_becomes_a_plan_whose_steps_depend_by_id_B2():
    made, usage, model = await plan_from(GOOD)
    first, second, third = made.steps
    assert made.plan_id.startswith("plan_")
    assert (made.name, made.goal, made.risk, made.status, made.approved) == (
        "Game",
        "A game",
        "low",
        "draft",
        False,
    )
    assert made.success_criteria == ("`make run` exits with 0",)
    assert (first.depends_on, second.depends_on) == ((), (first.step_id,))
    assert third.depends_on == (first.step_id, second.step_id)
    assert usage == ONE_CALL
    assert len(model.requests) == 1


BAD = [
    (drafted([], [1]), "a plan has 3 to 7 steps, not 2"),
    (drafted(*[[]] * 8), "a plan has 3 to 7 steps, not 8"),
    (drafted([], [1], [9]), "step 3 depends on 9, but there are only steps 1 to 3"),
    (drafted([0], [], []), "step 1 depends on 0, but there are only steps 1 to 3"),
    (drafted([], [3], [2]), "steps depend on each other in a circle: "),
    (drafted([], [2], []), "steps depend on each other in a circle: 2, 2"),
    (
        drafted([], [], [], success_criteria=[" "]),
        "`success_criteria` needs at least one that can be measured",
    ),
    (drafted([], [], [], risk="extreme"), "`risk`: must be one of 'low', 'medium' or 'high'"),
    (drafted([], [], [], name=" "), "`name` is empty"),
    (
        drafted([], [], [], steps=[{"name": "a", "description": ""}] * 3),
        "step 1 needs a name and a description",
    ),
    ("I would begin with the board.", "JSON"),
]


@every_row(("bad", "problem"), BAD)
async def test_a_bad_draft_is_mended_once_with_the_exact_fault_B2(bad, problem):
    made, usage, model = await plan_from(bad, GOOD)
    assert len(made.steps) == 3
    assert problem in model.requests[1].messages[-1].text
    assert "Output: PlanDraft" in model.requests[1].messages[-1].text
    assert usage == ONE_CALL + ONE_CALL


async def test_two_bad_drafts_are_no_plan_A6():
    with pytest.raises(BadAnswer) as error:
        await plan_from(drafted([]), drafted([]))
    assert error.value.usage == ONE_CALL + ONE_CALL


async def test_what_a_model_writes_can_t_look_like_another_line_of_the_plan():
    made, *_ = await plan_from(
        drafted([], [], [], name="Game\nrisk: low", goal=" ", success_criteria=["a\n- b", ""])
    )
    assert made.name == "Game risk: low"
    assert made.goal == "Make a game"
    assert made.success_criteria == ("a - b",)


def test_the_prompt_for_a_plan_carries_goal_summary_and_evidence_B2():
    evidence = (*seen("e1", text="old"), *seen("e2", text="new"))
    request = draft_plan("Make a game", "- Now: games", evidence).prompt(ModelTraits(name="m"))
    system, asked = request.messages
    assert request.output == "PlanDraft"
    assert "Output: PlanDraft\n" in system.text
    assert system.stable
    assert asked.text.index("[e1] old") < asked.text.index("[e2] new") < asked.text.index("Make a game")
    assert "- Now: games" in asked.text
    assert asked.text.endswith("Output: PlanDraft")


def test_evidence_that_does_not_fit_goes_oldest_first_and_the_goal_stays_F3():
    evidence = seen(*(f"e{n}" for n in range(1, 30)), text="word " * 400)
    request = draft_plan("Make a game", "", evidence).prompt(ModelTraits(name="m", window=4096))
    asked = request.messages[1].text
    assert "[e29]" in asked
    assert "[e1] " not in asked
    assert "Make a game" in asked
    assert len(asked) < 3 * 4096


def test_summary_and_evidence_come_from_the_state():
    state = AgentState(
        summaries=("hello → hi",),
        request=Request(request_id="r", text="make a game"),
        items=Items(constraints=("no dependencies",)),
        transcript=(
            TranscriptEntry(role="user", text="make a game"),
            TranscriptEntry(role="user", text="[e1] old", evidence_id="e1", stale=True),
            TranscriptEntry(role="user", text="[e2] found", evidence_id="e2"),
        ),
    )
    assert summary_of(state) == "- hello → hi\n- Now: make a game\n- Constraint: no dependencies"
    assert [one.text for one in evidence_in(state) if one.current] == ["found"]


def listed(*drafts):
    return json.dumps({"tasks": list(drafts)})


def validate(action):
    """As the catalogue does: unknown operations, missing and unknown arguments."""
    schema = next((one.schema() for one in OPERATIONS if one.name == action.operation), None)
    if schema is None:
        raise ToolError(f"there is no operation {action.operation}")
    faults = [f"{name} is missing" for name in schema["required"] if name not in action.args]
    faults += [f"there is no argument {name}" for name in action.args if name not in schema["properties"]]
    if faults:
        raise ToolError("; ".join(faults))


async def tasks_from(*answers, of=None):
    model = FakeModel(*answers)
    whole = plan(of or step("a"), step("b", "a"))
    made, usage = await put(
        model,
        draft_tasks(whole, whole.steps[0], "- Now: game", seen("e1", text="seen"), OPERATIONS, validate),
    )
    return made, usage, model


async def test_tasks_are_written_from_goal_step_summary_and_evidence_B3():
    made, usage, model = await tasks_from(listed(WRITE))
    (task,) = made
    assert (task.operation, task.args, task.status) == (WRITE["operation"], WRITE["args"], "pending")
    assert task.task_id.startswith("task_")
    assert usage == ONE_CALL
    system, asked = (message.text for message in model.requests[0].messages)
    for shown in ("A game that runs", "Do a.", "- Now: game", "[e1] seen", "0 of 2 steps complete"):
        assert shown in asked
    assert "- file_ops.write_file(path): …" in system
    assert "Output: TaskListDraft\n" in system


async def test_no_task_plans_or_starts_another_list_B3():
    _, _, model = await tasks_from(listed(WRITE))
    offered = model.requests[0].messages[0].text
    assert not any(family in offered for family in ("plan_tool.", "task_tool.", "task_loop."))


@every_row(
    ("bad", "problem"),
    [
        (listed(), "a list has 1 to 20 tasks, not 0"),
        (listed(*[WRITE] * 21), "a list has 1 to 20 tasks, not 21"),
        (
            listed(WRITE, {"operation": "file_ops.writefile", "args": {}}),
            "task 2: there is no operation file_ops.writefile",
        ),
        (listed({"operation": " ", "args": {}}), "task 1: there is no operation (none)"),
        (listed({"operation": "task_loop.run", "args": {}}), "task 1: task_loop.run can't be a task"),
        (
            listed({"operation": "plan_tool.propose", "args": {"goal": "x"}}),
            "plan_tool.propose can't be a task",
        ),
        (listed({"operation": "file_ops.write_file", "args": {"path": "a"}}), "content is missing"),
        (
            listed({"operation": "file_ops.read_file", "args": {"path": "a", "line": 1}}),
            "task 1: there is no argument line",
        ),
    ],
)
async def test_a_list_that_can_t_be_called_is_mended_once_B3(bad, problem):
    made, _, model = await tasks_from(bad, listed(WRITE))
    assert len(made) == 1
    assert problem in model.requests[1].messages[-1].text


async def test_contents_may_travel_as_raw_blocks_A7():
    task = {"operation": "file_ops.write_file", "args": {"path": "a.py", "content": {"block": "A"}}}
    answer = f'{listed(task)}\n<<<block A\nprint("\\n")\n>>>block A\n'
    made, *_ = await tasks_from(answer)
    assert made[0].args["content"] == 'print("\\n")\n'


async def test_what_was_tried_before_for_the_step_is_shown():
    tried = tasks("failed")[0].model_copy(update={"result": "no such file"})
    _, _, model = await tasks_from(listed(WRITE), of=step("a", task_list=(tried,)))
    assert "no such file" in model.requests[0].messages[1].text


async def test_a_model_that_can_t_be_reached_is_told_as_such():
    with pytest.raises(ProviderError):
        await tasks_from([ProviderError("llm.no_key")])
