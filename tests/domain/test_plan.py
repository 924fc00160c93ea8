"""Statuses of plans, steps and tasks (B1, B4, B5, B7)."""

import re

from hypothesis import given

from duckflow.domain.events import PlanChanged
from duckflow.domain.reduce.plans import change_plan
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.domain.work.plan import (
    Plan,
    PlanStep,
    Task,
    TaskList,
    combined,
    derive,
    find_cycle,
    new_id,
    progress,
    unmet,
)
from fakes.events import values_of
from fakes.plans import plan, step, tasks
from fakes.rows import every_row

TASKS = [
    ((), "pending"),
    (("pending",), "pending"),
    (("pending", "pending"), "pending"),
    (("in_progress",), "in_progress"),
    (("in_progress", "pending"), "in_progress"),
    (("completed", "pending"), "in_progress"),
    (("completed", "in_progress"), "in_progress"),
    (("completed",), "completed"),
    (("completed", "completed"), "completed"),
    (("failed",), "failed"),
    (("failed", "pending"), "failed"),
    (("completed", "failed"), "failed"),
    (("in_progress", "failed"), "failed"),
]

STEPS = [
    ((), False, "draft"),
    ((), True, "approved"),
    (("pending", "pending"), False, "draft"),
    (("pending", "pending"), True, "approved"),
    (("in_progress", "pending"), False, "in_progress"),
    (("in_progress", "pending"), True, "in_progress"),
    (("completed", "pending"), True, "in_progress"),
    (("completed", "completed"), False, "completed"),
    (("completed", "completed"), True, "completed"),
    (("completed", "failed"), True, "failed"),
    (("failed", "pending"), False, "failed"),
    (("failed", "in_progress"), True, "failed"),
]


@every_row("kind", ["plan", "step", "task", "list"])
def test_ids_say_what_they_are_of_B1(kind):
    first, second = new_id(kind), new_id(kind)
    assert re.fullmatch(rf"{kind}_[0-9a-f]{{8}}", first)
    assert first != second


def test_the_models_have_the_fields_and_statuses_they_begin_with_B1():
    task = Task(task_id="task_1", operation="file_ops.read_file")
    made = PlanStep(step_id="step_1", name="n", description="d")
    whole = Plan(plan_id="plan_1", name="n", goal="g")
    assert (task.args, task.status, task.result) == ({}, "pending", None)
    assert (made.status, made.depends_on, made.task_list) == ("pending", (), ())
    assert (whole.status, whole.approved, whole.risk, whole.steps) == ("draft", False, "low", ())
    assert TaskList(list_id="list_1").step_id is None


@every_row(("statuses", "expected"), TASKS)
def test_a_step_s_status_follows_from_its_tasks_B4(statuses, expected):
    assert combined(tasks(*statuses)) == expected


@every_row(("statuses", "expected"), [row for row in TASKS if row[0]])
def test_tasks_overrule_what_the_step_said_B4(statuses, expected):
    said = step("a", status="completed", task_list=tasks(*statuses))
    assert derive(plan(said)).steps[0].status == expected


def test_reading_alone_completes_no_step_B4():
    read = tuple(task.model_copy(update={"looks": True}) for task in tasks("completed", "completed"))
    assert plan(step("a", task_list=read)).steps[0].status == "in_progress"
    assert plan(step("a", task_list=(*read, *tasks("completed")))).steps[0].status == "completed"
    assert plan(step("a", task_list=(*read, *tasks("failed")))).steps[0].status == "failed"


@every_row("status", ["pending", "in_progress", "completed", "failed"])
def test_a_step_without_tasks_keeps_its_status_B4(status):
    assert plan(step("a", status=status)).steps[0].status == status


@every_row(("statuses", "approved", "expected"), STEPS)
def test_a_plan_s_status_follows_from_its_steps_B4(statuses, approved, expected):
    steps = [step(str(place), status=status) for place, status in enumerate(statuses)]
    assert plan(*steps, approved=approved).status == expected


def test_work_that_is_taken_back_never_makes_a_plan_approved_B7():
    begun = plan(step("a", status="in_progress"))
    assert begun.status == "in_progress"
    assert derive(begun.model_copy(update={"steps": (step("a"),)})).status == "draft"


def test_a_status_alone_is_no_approval_B7():
    assert plan(step("a"), status="approved").status == "draft"


@every_row(
    ("risk", "approved", "needs"),
    [("low", False, False), ("medium", False, False), ("high", False, True), ("high", True, False)],
)
def test_only_high_risk_needs_consent_before_the_first_step_B7(risk, approved, needs):
    assert plan(step("a"), risk=risk, approved=approved).needs_consent is needs


@given(values_of(Plan))
def test_deriving_twice_is_deriving_once_B4(any_plan):
    once = derive(any_plan)
    assert derive(once) == once
    assert once.approved == any_plan.approved


@every_row("status", ["pending", "in_progress", "failed"])
def test_a_step_waits_for_all_it_depends_on_B4(status):
    waits = plan(step("a", status="completed"), step("b", status=status), step("c", "a", "b"))
    assert [one.step_id for one in unmet(waits, waits.steps[2])] == ["step_b"]
    assert unmet(waits, waits.steps[0]) == ()
    met = plan(step("a", status="completed"), step("b", "a"))
    assert unmet(met, met.steps[1]) == ()


def test_the_step_in_hand_is_the_one_in_progress_else_the_first_that_can_start():
    assert plan(step("a", "b"), step("b"), step("c")).current.step_id == "step_b"
    assert plan(step("a"), step("b", status="in_progress")).current.step_id == "step_b"
    assert plan(step("a", status="failed"), step("b", "a")).current is None
    assert plan(step("a", status="completed")).current is None


def test_progress_says_how_far_the_plan_is_B5():
    steps = [step("a", status="completed"), step("b", "a"), step("c", "b")]
    said = progress(plan(*steps))
    assert said == "Make a game (plan_1, in_progress): 1 of 3 steps complete, now: Step b (step_b)"
    failed = plan(step("a", status="failed"), step("b", "a"))
    assert progress(failed).endswith("0 of 2 steps complete, failed: Step a (step_a)")
    done = plan(step("a", status="completed"))
    assert progress(done) == "Make a game (plan_1, completed): 1 of 1 steps complete"


@every_row(
    ("depends_on", "circle"),
    [
        ({}, set()),
        ({1: [], 2: [1], 3: [1, 2]}, set()),
        ({1: [1]}, {1}),
        ({1: [2], 2: [1], 3: []}, {1, 2}),
        ({1: [3], 2: [1], 3: [2], 4: [1]}, {1, 2, 3}),
        ({1: [9]}, set()),
    ],
)
def test_a_circle_is_found_and_named_B2(depends_on, circle):
    found = find_cycle(depends_on)
    assert set(found) == circle
    assert not found or found[0] == found[-1]


def test_results_about_superseded_plans_are_stale_B2():
    """F3: a trim leaves them out first, and no side question sees them."""
    shown = tuple(
        TranscriptEntry(role="user", text="a plan", evidence_id=f"e{place}", operation=operation)
        for place, operation in enumerate(("plan_tool.propose", "shell.run", "plan_tool.revise"), start=1)
    )
    state = AgentState(transcript=shown)
    revised = change_plan(state, PlanChanged(plan=plan(step("a")), change="revised"))
    assert [one.stale for one in revised.transcript] == [True, False, False]
    advanced = change_plan(state, PlanChanged(plan=plan(step("a")), change="step"))
    assert not any(one.stale for one in advanced.transcript)
