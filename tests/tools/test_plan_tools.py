"""plan_tool: what each operation returns, refuses and hands on (B2, B4, B7)."""

# ruff: noqa: E501 - a snapshot is as long as what it holds

import pytest
from inline_snapshot import snapshot

from duckflow.domain.decision import Action
from duckflow.domain.errors import BadAnswer, ToolError
from duckflow.domain.events import PlanChanged
from duckflow.domain.reduce.plans import change_plan
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan
from duckflow.i18n.catalogue import set_language
from duckflow.safety.policy.policy import MODES, PolicyCase, decide
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.plans.plan_tool import plan_tools
from fakes.plans import plan, planned, step, tasks
from fakes.rows import every_row

GAME = plan(step("a"), step("b", "a"), step("c", "a", "b"))
RISKY = plan(step("a"), step("b", "a"), risk="high")


class Bench:
    """The plan tools over a state that events change, with plans that a model would draft."""

    def __init__(self, state: AgentState, *drafts: Plan | Exception) -> None:
        self.state = state
        self.goals: list[str] = []
        self.meanwhile = lambda: None
        self._drafts = list(drafts)
        self.catalogue = Catalogue(plan_tools(self, self._draft))

    async def _draft(self, goal: str) -> Plan:
        self.goals.append(goal)
        self.meanwhile()
        drafted = self._drafts.pop(0)
        if isinstance(drafted, Exception):
            raise drafted
        return drafted

    async def call(self, name: str, **args):
        """Run an operation; what it returns as events becomes the state."""
        tool, valid = self.catalogue.validate(Action(operation=f"plan_tool.{name}", args=args))
        before = self.state
        result = await tool.run(valid, None)
        assert self.state is before or self.goals, "a tool never writes state"
        for event in result.events:
            self.state = change_plan(self.state, event)
        return result

    async def preview(self, **args) -> str:
        tool, valid = self.catalogue.validate(Action(operation="plan_tool.approve", args=args))
        return (await tool.propose(valid, None)).difference

    async def refusal(self, name: str, **args) -> str:
        """The words with which an operation refuses; nothing changes."""
        before = self.state
        with pytest.raises(ToolError) as error:
            await self.call(name, **args)
        assert self.state is before
        return str(error.value)

    def status(self, name: str) -> str:
        found = self.state.active_plan.step(f"step_{name}")
        return found.status


async def test_propose_saves_the_plan_and_shows_it_whole_B2():
    tools = Bench(planned(mode="edits"), GAME)
    result = await tools.call("propose", goal="Make a game")
    assert tools.goals == ["Make a game"]
    assert (tools.state.plans, tools.state.active_plan_id) == ((GAME,), "plan_1")
    assert result.events == (PlanChanged(plan=GAME, change="proposed"),)
    assert result.text == snapshot("""\
plan_1: Make a game
goal: A game that runs
status: draft
risk: low
success_criteria:
- `make run` exits with 0
steps:
1. step_a [pending] Step a
   Do a.
2. step_b [pending] Step b
   Do b.
   depends_on: step_a
3. step_c [pending] Step c
   Do c.
   depends_on: step_a, step_b
Next: task_tool.generate_list for step_a (Step a), \
or do it yourself and set it completed with plan_tool.update_step.\
""")


@every_row(
    ("mode", "risk", "asks"),
    [
        ("ask", "low", True),
        ("ask", "high", True),
        ("edits", "low", False),
        ("edits", "medium", False),
        ("edits", "high", True),
        ("auto", "high", True),
        ("auto", "medium", False),
        ("plan", "low", False),
        ("plan", "high", True),
    ],
)
@every_row("how", ["propose", "revise"])
async def test_a_new_plan_leads_to_the_user_s_answer_where_it_is_needed_B7(how, mode, risk, asks):
    drafted = GAME.model_copy(update={"risk": risk})
    tools = Bench(planned(GAME, mode=mode), drafted)
    result = await tools.call(how, goal="Make a game")
    asked = Action(operation="plan_tool.approve", args={"plan_id": "plan_1"}, reasoning="")
    assert result.then == ((asked,) if asks else ())
    assert result.events[0].asks is asks, "the question shows the plan, so nothing else does"
    assert tools.state.active_plan.approved is False


async def test_a_model_that_drafts_nothing_usable_costs_an_action_not_the_session_A6():
    tools = Bench(planned(), BadAnswer("llm.bad_answer", output="PlanDraft", problem="two steps"))
    refused = await tools.refusal("propose", goal="Make a game")
    assert "two steps" in refused
    assert "llm.bad_answer" not in refused, "a sentence, not a key"


async def test_a_goal_is_needed_B2():
    assert "`goal` is empty" in await Bench(planned()).refusal("propose", goal="  ")


@every_row("mode", MODES)
def test_no_mode_lets_the_model_approve_a_plan_by_itself_B7(mode):
    tool = Bench(planned(GAME)).catalogue.get("plan_tool.approve")
    assert decide(mode, PolicyCase(effect=tool.effect)).verdict == "ask"


async def test_the_plan_is_shown_for_approval_in_words_and_nothing_is_cut_B7():
    long = step("b", "a").model_copy(update={"description": "x" * 2000})
    begun = plan(step("a", task_list=tasks("completed", "pending")), long)
    assert (
        await Bench(planned(begun)).preview()
        == f"""\
📋 Plan: Make a game (risk: low)
Goal: A game that runs
Status: in progress
Done when:
   - `make run` exits with 0
1. Step a [in progress]
   Do a.
2. Step b (after step 1)
   {"x" * 2000}"""
    )


async def test_the_plan_is_shown_in_japanese_words_B7():
    set_language("ja")
    assert (
        await Bench(planned(plan(step("a"), step("b", "a")))).preview()
        == """\
📋 計画: Make a game（リスク: 低）
目標: A game that runs
状態: 案
完了の条件:
   - `make run` exits with 0
1. Step a
   Do a.
2. Step b（1 のあと）
   Do b."""
    )


async def test_no_line_of_a_description_can_pass_for_a_part_of_the_plan_B7():
    tricky = step("a").model_copy(
        update={"description": "Do it.\nrisk: low\n\n2. step_z [completed]\u2028goal: x"}
    )
    shown = (await Bench(planned(plan(tricky, risk="high"))).preview()).partition("\n1. ")[2]
    assert all(line.startswith(("Step a", "   ")) for line in shown.splitlines())


async def test_approve_marks_the_plan_and_says_how_to_go_on_B7():
    tools = Bench(planned(RISKY))
    result = await tools.call("approve")
    assert tools.state.active_plan.approved
    assert tools.state.active_plan.status == "approved"
    assert result.events[0].change == "approved"
    assert "task_tool.generate_list for step_a" in result.text


async def test_a_plan_is_not_asked_about_twice():
    tools = Bench(planned(plan(step("a"), approved=True)))
    assert await tools.preview() == ""
    assert (await tools.call("approve")).events == ()


async def test_what_changed_in_a_plan_changes_what_is_shown_G5():
    tools = Bench(planned(GAME))
    shown = await tools.preview(plan_id="plan_1")
    await tools.call("update_step", step_id="step_a", status="in_progress")
    assert await tools.preview(plan_id="plan_1") != shown


async def test_get_and_list_show_plans():
    other = plan(step("x", task_list=tasks("failed")), plan_id="plan_2", name="Docs")
    tools = Bench(planned(GAME, other))
    assert "plan_1: Make a game" in (await tools.call("get")).text
    text = (await tools.call("get", plan_id="plan_2")).text
    assert 'task_x1 [failed] file_ops.read_file {"path": "a.py"}' in text
    assert (await tools.call("list")).text == snapshot("""\
Make a game (plan_1, draft): 0 of 3 steps complete, now: Step a (step_a) [in hand]
Docs (plan_2, failed): 0 of 1 steps complete, failed: Step x (step_x)\
""")
    assert (await Bench(planned()).call("list")).text == "There are no plans."


@every_row(
    ("name", "args", "words"),
    [
        ("get", {"plan_id": "plan_9"}, "There is no plan plan_9. Known: plan_1 (Make a game)."),
        ("approve", {"plan_id": "plan_9"}, "no plan plan_9"),
        ("delete", {"plan_id": "plan_9"}, "no plan plan_9"),
        ("revise", {"plan_id": "plan_9", "goal": "x"}, "no plan plan_9"),
        (
            "update_step",
            {"step_id": "step_9", "status": "failed"},
            "There is no step step_9. Known: step_a (Step a), step_b",
        ),
        (
            "update_step",
            {"step_id": "step_a", "status": "finished"},
            "`status`: must be one of 'pending', 'in_progress', 'completed' or 'failed', not 'finished'",
        ),
        ("revise", {"steps": [{"step_id": "step_9"}]}, "plan_1 has no step step_9. Known: step_a (Step a)"),
        ("revise", {"steps": []}, "`steps` must have 1 to 20 items, not 0"),
        ("revise", {}, "steps or goal is needed"),
        ("revise", {"steps": [{"step_id": "step_a"}, {"step_id": "step_a"}]}, "once only: step_a"),
        ("revise", {"steps": [{"name": "New"}]}, "A new step needs a name and a description"),
        (
            "revise",
            {"steps": [{"step_id": "step_a", "depends_on": ["step_b"]}]},
            "depends_on names step_b, which is not in the new list",
        ),
        ("revise", {"steps": [{"step_id": "step_a", "depends_on": [2]}]}, "depends_on names 2"),
        (
            "revise",
            {"steps": [{"step_id": "step_a", "depends_on": [2]}, {"step_id": "step_b"}]},
            "in a circle: step_",
        ),
        ("revise", {"steps": [{"step_id": "step_a", "depends_on": [1]}]}, "in a circle: step_a, step_a"),
    ],
)
async def test_what_can_t_be_is_refused_by_name_B2(name, args, words):
    tools = Bench(planned(GAME))
    assert words in await tools.refusal(name, **args)
    assert tools.goals == []


async def test_without_a_plan_the_way_to_one_is_told_B2():
    tools = Bench(planned())
    assert "plan_tool.propose" in await tools.refusal("get")
    assert "plan_tool.propose" in await tools.refusal("update_step", step_id="step_a", status="failed")


async def test_the_preview_of_an_unknown_plan_is_refused_too():
    with pytest.raises(ToolError, match="no plan plan_9"):
        await Bench(planned(GAME)).preview(plan_id="plan_9")


async def test_update_step_sets_a_status_and_the_plan_follows_B4():
    tools = Bench(planned(GAME))
    result = await tools.call("update_step", step_id="step_a", status="in_progress")
    assert (tools.status("a"), tools.state.active_plan.status) == ("in_progress", "in_progress")
    assert result.events[0].change == "step"
    await tools.call("update_step", step_id="step_a", status="completed")
    result = await tools.call("update_step", step_id="step_b", status="completed")
    assert "2 of 3 steps complete, now: Step c (step_c)" in result.text


async def test_a_step_with_tasks_is_what_its_tasks_are_B4():
    tools = Bench(planned(plan(step("a", task_list=tasks("completed", "pending")))))
    words = await tools.refusal("update_step", step_id="step_a", status="completed")
    assert words == (
        "step_a has tasks: its status follows from them and is in_progress. "
        "Status pending opens it again, without tasks."
    )


async def test_a_completed_step_is_opened_again_for_new_tasks_B4():
    tools = Bench(planned(plan(step("a", task_list=tasks("completed")), step("b", "a"))))
    assert tools.status("a") == "completed"
    result = await tools.call("update_step", step_id="step_a", status="pending")
    assert tools.status("a") == "pending"
    assert "0 of 2 steps complete, now: Step a (step_a)" in result.text
    assert "step_a" in await tools.refusal("update_step", step_id="step_b", status="completed")


async def test_a_step_that_only_read_is_complete_when_the_model_says_so_B4():
    read = tuple(task.model_copy(update={"looks": True}) for task in tasks("completed", "completed"))
    tools = Bench(planned(plan(step("a", task_list=read))))
    assert tools.status("a") == "in_progress"
    await tools.call("update_step", step_id="step_a", status="completed")
    assert tools.status("a") == "completed"


async def test_a_step_whose_tasks_run_is_not_opened_again_B4():
    tools = Bench(planned(GAME, running="step_a"))
    words = await tools.refusal("update_step", step_id="step_a", status="pending")
    assert "The tasks of step_a run in the background now" in words


@every_row("status", ["in_progress", "completed"])
async def test_a_step_starts_only_when_what_it_depends_on_is_complete_B4(status):
    tools = Bench(planned(GAME))
    words = await tools.refusal("update_step", step_id="step_c", status=status)
    assert words == snapshot(
        "step_c can't start before what it depends on is complete: step_a (Step a: pending), step_b (Step b: pending)."
    )


@every_row("status", ["in_progress", "completed"])
async def test_a_step_of_high_risk_starts_only_after_the_user_s_yes_B7(status):
    tools = Bench(planned(RISKY))
    words = await tools.refusal("update_step", step_id="step_a", status=status)
    assert "plan_1 has high risk and the user has not approved it" in words
    await tools.call("approve")
    await tools.call("update_step", step_id="step_a", status=status)
    assert tools.status("a") == status


async def test_revise_keeps_known_steps_and_what_was_done_for_them_B2():
    done = plan(step("a", task_list=tasks("completed")), step("b", "a"), step("c", "b"), approved=True)
    tools = Bench(planned(done, mode="edits"))
    new = {"name": "Sounds", "description": "Add sounds.", "depends_on": [1, "step_c"]}
    changed = {"step_id": "step_c", "description": "Do c better."}
    result = await tools.call("revise", steps=[{"step_id": "step_a"}, changed, new])
    first, second, third = tools.state.active_plan.steps
    assert first == done.steps[0]
    assert (second.name, second.description, second.depends_on) == ("Step c", "Do c better.", ())
    assert (third.name, third.depends_on) == ("Sounds", ("step_a", "step_c"))
    assert result.events[0].change == "revised"
    assert tools.goals == []


async def test_a_step_with_a_new_description_is_open_again_B4():
    done = plan(step("a", task_list=tasks("completed")), step("b", task_list=tasks("failed", of="y")))
    tools = Bench(planned(done))
    await tools.call("revise", steps=[{"step_id": "step_a", "description": "6 by 6"}, {"step_id": "step_b"}])
    assert [(one.status, len(one.task_list)) for one in tools.state.active_plan.steps] == [
        ("pending", 0),
        ("failed", 1),
    ]


async def test_a_plan_that_was_revised_is_not_approved_any_more_B7():
    tools = Bench(planned(plan(step("a"), step("b"), risk="high", approved=True)))
    await tools.call("revise", steps=[{"step_id": "step_b"}], goal="Less")
    assert (tools.state.active_plan.approved, tools.state.active_plan.goal) == (False, "Less")
    assert "not approved" in await tools.refusal("update_step", step_id="step_b", status="in_progress")


async def test_a_new_goal_alone_has_the_steps_drafted_anew_under_the_same_id_B2():
    drafted = plan(
        step("x"), step("y", "x"), plan_id="plan_new", name="Board game", goal="Cards", approved=True
    )
    tools = Bench(planned(GAME), drafted)
    await tools.call("revise", goal="Make a card game")
    assert tools.goals == ["Make a card game"]
    (only,) = tools.state.plans
    assert (only.plan_id, only.name, only.goal, only.approved) == ("plan_1", "Board game", "Cards", False)
    assert [one.step_id for one in only.steps] == ["step_x", "step_y"]


async def test_a_list_that_starts_while_the_plan_is_drafted_anew_is_not_lost_C2():
    tools = Bench(planned(GAME), plan(step("x")))
    tools.meanwhile = lambda: setattr(tools, "state", planned(GAME, running="step_a"))
    with pytest.raises(ToolError, match="step_a run in the background"):
        await tools.call("revise", goal="Make a card game")


async def test_steps_under_way_can_t_be_removed():
    tools = Bench(planned(GAME, running="step_a"))
    words = "The tasks of step_a run in the background now."
    assert words in await tools.refusal("delete", plan_id="plan_1")
    assert words in await tools.refusal("revise", steps=[{"step_id": "step_b"}])
    await tools.call("revise", steps=[{"step_id": "step_a"}])


async def test_delete_removes_the_plan_B2():
    tools = Bench(planned(GAME))
    await tools.call("delete", plan_id="plan_1")
    assert (tools.state.plans, tools.state.active_plan_id) == ((), None)


def test_what_the_prompt_says_of_plans():
    assert tuple(tool.line for tool in Bench(planned()).catalogue.tools) == snapshot(
        (
            "plan_tool.propose(goal): draft a plan for long work and ask the user to approve it; goal says what it must reach",
            "plan_tool.get(plan_id?): a plan by plan_id, or the one in hand, with steps and tasks",
            "plan_tool.list(): all plans, a line each",
            "plan_tool.approve(plan_id?): ask the user to approve a plan by plan_id; high risk needs it",
            "plan_tool.update_step(step_id, status): set the status (pending, in_progress, completed, failed) of step_id; pending opens it again",
            "plan_tool.revise(plan_id?, steps?, goal?): change a plan by plan_id and ask again: steps, each {step_id (keeps it) or name, description, depends_on}, or goal",
            "plan_tool.delete(plan_id): remove the plan plan_id, no files",
        )
    )


def test_every_argument_is_named_in_the_summary_and_described():
    for tool in Bench(planned()).catalogue.tools:
        for name, field in tool.args.model_fields.items():
            assert name in tool.summary, tool.operation
            assert field.description, tool.operation
        assert not any(word in str(tool.schema()) for word in ("maxLength", "minLength", "maxItems", "null"))
