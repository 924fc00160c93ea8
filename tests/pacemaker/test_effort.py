"""K6: how much models are asked to think, chosen by the pacemaker unless the user chose it."""

from pathlib import Path

from duckflow.config.settings import LlmSettings
from duckflow.domain.events import EffortChanged, SessionStarted
from duckflow.domain.model import EFFORTS, Usage
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.state import AgentState, Request
from duckflow.domain.work.objective import (
    AttemptResult,
    ContinuationContext,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.domain.work.plan import TaskList
from duckflow.llm.tiers import Tiers
from duckflow.loops.thinking.advisor import Advisor
from duckflow.loops.thinking.titles import write_title
from duckflow.pacemaker.effort import effort_for_decision, effort_for_question
from duckflow.services.evaluation import (
    analyze_execution_failure,
    evaluate_task_satisfaction,
    extract_missing_information,
    extract_task_requirements,
)
from duckflow.services.plans import draft_plan, plan_continuation_execution, plan_initial_execution
from duckflow.services.task_lists import write_report
from fakes.cases import case
from fakes.engine import engine
from fakes.model import FakeModel
from fakes.rows import every_row


def asked(**known) -> AgentState:
    return AgentState(request=Request(request_id="r", text="", **known))


def tried(*, done: bool) -> TaskObjective:
    return TaskObjective(request="", attempts=(AttemptResult(number=1, done=done),))


@every_row(
    ("state", "effort"),
    [
        (AgentState(), "medium"),
        (asked(), "medium"),
        (asked(profile="debugging"), "medium"),
        (asked(profile="simple_question"), "low"),
        (asked(profile="general_chat"), "low"),
        (asked(profile="simple_question", changed=("a.py",)), "medium"),
        (asked(failing=("a.py",)), "medium"),
        (asked(replanned=True), "high"),
        (asked(recoveries=1), "high"),
        (asked(objective=tried(done=False)), "high"),
        (asked(objective=tried(done=True)), "medium"),
        (AgentState(vitals=Vitals(mood=0.7, focus=0.5)), "medium"),
        (AgentState(vitals=Vitals(mood=0.69)), "high"),
        (AgentState(vitals=Vitals(focus=0.49)), "high"),
        (AgentState(vitals=Vitals(stamina=0.0)), "medium"),
        (AgentState(effort="low", vitals=Vitals(focus=0.1)), "low"),
        (AgentState(effort="high"), "high"),
    ],
)
def test_K6_decisions_get_more_thought_in_trouble_and_less_where_the_question_is_simple(state, effort):
    assert effort_for_decision(state) == effort


def test_K6_plans_and_verdicts_get_much_thought_and_short_answers_little():
    high = (
        draft_plan("Do it", "", ()),
        plan_initial_execution("Do it", "", ()),
        evaluate_task_satisfaction(case(1)),
        analyze_execution_failure("Do it", (), ()),
        analyze_execution_failure("Do it", (), (), "second_opinion"),
    )
    low = (
        plan_continuation_execution("Do it", ContinuationContext(score=0, needed=1), ()),
        write_title("Do it", "Done."),
        write_report(TaskList(list_id="l")),
        extract_task_requirements("Do it"),
        extract_missing_information(case(1), SatisfactionEvaluation(overall_score=0, done=False)),
    )
    assert [question.asked.effort for question in high] == ["high"] * len(high)
    assert [question.asked.effort for question in low] == ["low"] * len(low)


@every_row(
    ("usual", "state", "effort"),
    [
        ("low", AgentState(), "low"),
        ("medium", AgentState(), "medium"),
        ("high", AgentState(), "high"),
        ("low", AgentState(vitals=Vitals(mood=0.1)), "low"),
        ("medium", AgentState(vitals=Vitals(mood=0.1)), "high"),
        ("high", AgentState(effort="low"), "low"),
        ("low", AgentState(effort="medium"), "medium"),
    ],
)
def test_K6_side_questions_follow_the_user_then_the_kind_of_question_then_the_vitals(usual, state, effort):
    assert effort_for_question(state, usual) == effort


async def test_K6_the_advisor_asks_with_the_effort_of_the_question(folder: Path):
    model = FakeModel('{"title": "One"}', '{"title": "Two"}')

    async def opened(_name: str) -> FakeModel:
        return model

    async with engine(folder) as duck:
        advisor = Advisor(duck.app.session, Tiers(LlmSettings(model="m"), "m", opened), no_price)
        await advisor.ask(write_title("first", ""))
        duck.app.session.record(EffortChanged(effort="high"))
        await advisor.ask(write_title("second", ""))
    assert [request.effort for request in model.requests] == ["low", "high"]


async def no_price(_name: str, _usage: Usage) -> float | None:
    return None


async def test_K6_the_choice_of_a_session_outlasts_it_and_a_setting_holds_until_then(folder: Path):
    started: list[str] = []
    async with engine(folder, llm={"effort": "low"}) as duck:
        session = duck.state.session_id
        started += [one.effort for one in duck.of(SessionStarted)]
    async with engine(folder, session=session, llm={"effort": "medium"}) as duck:
        started += [one.effort for one in duck.of(SessionStarted)]
        duck.app.session.record(EffortChanged(effort="high"))
        assert duck.state.effort == "high"
    async with engine(folder, session=session, llm={"effort": "medium"}) as duck:
        started += [one.effort for one in duck.of(SessionStarted)]
        assert duck.state.effort == "high"
    assert started == ["low", "medium", "high"]
    assert EFFORTS[0] == "auto"
