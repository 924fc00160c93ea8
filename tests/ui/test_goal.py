"""J8, J9: the goal of a request and its degree of fulfilment, as text in both languages."""

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, AttemptPlanned, Evaluated, RequirementsFound
from duckflow.domain.reduce.objective import begin_attempt, end_attempt, learn, note_list
from duckflow.domain.state import AgentState, Request
from duckflow.domain.work.checks import DOCTESTS, PARSING, CheckResult
from duckflow.domain.work.objective import (
    ContinuationContext,
    ExecutionPlan,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.i18n.catalogue import set_language, text
from duckflow.services.plans import plain_continuation
from duckflow.ui.output.text_width import width_of
from duckflow.ui.views.events import Describer
from duckflow.ui.views.goal import attempt_text, check_name, evaluation_text, goal_text, requirements_line
from fakes.rows import every_row

KINDS = (DOCTESTS, PARSING, "")
VERDICT = SatisfactionEvaluation(
    overall_score=0.52,
    done=False,
    requirement_scores=(
        RequirementScore(requirement="it prints hello", priority=1, score=0.9, evidence=("e1", "e3")),
        RequirementScore(requirement="it has a test", priority=2, score=0.4),
    ),
    missing_aspects=("no test runs",),
    quality_assessment="Works,\nbut is untested.",
)


def judged() -> TaskObjective:
    items = (
        RequirementItem(requirement="it prints hello", priority=1),
        RequirementItem(requirement="it has a test", priority=2),
        RequirementItem(requirement="it is documented", priority=3),
    )
    objective = TaskObjective(request="Make a.py", requirements=items)
    objective = note_list(objective, [Action(operation="file_ops.read_file", args={})])
    objective = end_attempt(objective, VERDICT)
    return learn(begin_attempt(objective, ExecutionPlan(strategy="Write the test first")), ("no network",))


def state(objective: TaskObjective, **fields) -> AgentState:
    return AgentState(request=Request(request_id="r", text="Make a.py", objective=objective, **fields))


def test_J8_goal_in_english():
    assert goal_text(state(judged())) == (
        "🎯 Make a.py\n"
        "  ☑ 90 %  it prints hello [must]\n"
        "  ◐ 40 %  it has a test [should]\n"
        "  ☐ 0 %  it is documented [nice to have]\n"
        "⚖ Last verdict: 52 %, not satisfied yet\n"
        "  Works, but is untested.\n"
        "  Missing:\n"
        "    • no test runs\n"
        "🔁 Attempt 1 (52 %): the direct approach\n"
        "🔁 Attempt 2 (under way): Write the test first\n"
        "📌 Learned: no network"
    )


def test_J8_goal_in_japanese():
    set_language("ja")
    assert goal_text(state(judged())).splitlines()[1:5] == [
        "  ☑ 90 %  it prints hello［必須］",
        "  ◐ 40 %  it has a test［重要］",
        "  ☐ 0 %  it is documented［できれば］",
        "⚖ 直近の評価: 達成度 52 %、まだ足りません",
    ]


@every_row("language", ["en", "ja"])
def test_J3_whoever_looks_at_a_score_sees_why_it_was_held_down(language):
    set_language(language)
    for whole in ("failing_verification", "must_not_met", "not_recommended", "no_reply"):
        score = RequirementScore(
            requirement="it has a test", priority=1, score=0.5, claimed=0.9, cap="no_evidence"
        )
        capped = SatisfactionEvaluation(
            overall_score=0.5, done=False, requirement_scores=(score,), caps=(whole, "no_evidence")
        )
        items = (RequirementItem(requirement="it has a test"),)
        objective = end_attempt(TaskObjective(request="x", requirements=items), capped)
        _, requirement, deduction, _, reason, *_ = goal_text(state(objective)).splitlines()
        assert "50 %" in requirement
        assert "90 %" in deduction
        assert reason == text(f"goal.capped.{whole}")
        assert reason in evaluation_text(Evaluated(iteration=1, evaluation=capped, checks=()))


def test_J8_while_requirements_are_looked_for_and_before_any_request():
    assert "still being extracted" in goal_text(state(TaskObjective(request="x")))
    assert goal_text(AgentState()) == "There is no request yet. Say what you want done."


def test_J8_after_the_request_ended():
    ended = state(judged()).request.model_copy(update={"outcome": "done"})
    shown = goal_text(AgentState(finished=ended))
    assert "it prints hello" in shown
    assert shown.endswith("✓ Done")
    talk = Request(request_id="r", text="hi", objective=TaskObjective(request="hi"), outcome="done")
    assert "not split into requirements" in goal_text(AgentState(finished=talk))


def test_J8_long_japanese_is_cut_by_the_columns_it_takes():
    long = TaskObjective(request="あ" * 500, requirements=(RequirementItem(requirement="い" * 500),))
    assert max(width_of(line) for line in goal_text(state(long)).splitlines()) <= 210
    many = TaskObjective(
        request="x", requirements=tuple(RequirementItem(requirement=str(n)) for n in range(50))
    )
    assert "… and 30 more" in goal_text(state(many))


def test_J8_what_a_model_says_can_not_steer_the_terminal():
    bad = TaskObjective(request="x\x1b[2J", requirements=(RequirementItem(requirement="a\u202eb\n1. yes"),))
    shown = goal_text(state(bad))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n1. yes" not in shown


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        (
            "en",
            [
                "🎯 Requirements found: 2",
                "🔁 Attempt 2: Write the test first",
                "🔁 Attempt 2: starting with what is still missing",
                "⚖ Not satisfied yet\n  ◐ it has a test\n  Missing: no test runs",
                "⚖ Satisfied\n  Checks: 1 passed\n  Well done.",
            ],
        ),
        (
            "ja",
            [
                "🎯 要件を 2 件に整理しました",
                "🔁 2 回目の試行: Write the test first",
                "🔁 2 回目の試行: 足りない点から取りかかります",
                "⚖ まだ足りません\n  ◐ it has a test\n  足りないもの: no test runs",
                "⚖ 要件を満たしました\n  実行した確認: 1 件合格\n  Well done.",
            ],
        ),
    ],
)
def test_J9_requirements_attempts_and_verdicts_have_their_lines(language, lines):
    set_language(language)
    items = tuple(RequirementItem(requirement=one) for one in "ab")
    passed = CheckResult(kind="test", name="pytest", state="passed")
    done = SatisfactionEvaluation(overall_score=0.91, done=True, quality_assessment="Well done.")
    plan = ExecutionPlan(strategy="Write the\ntest first")
    by_program = plain_continuation(
        ContinuationContext(score=0.2, needed=0.8, problems=("check of a.py: failed",))
    )
    assert [
        requirements_line(RequirementsFound(requirements=items)),
        attempt_text(AttemptPlanned(number=2, plan=plan, told="")),
        attempt_text(AttemptPlanned(number=2, plan=by_program, told="")),
        evaluation_text(Evaluated(iteration=1, evaluation=VERDICT)),
        evaluation_text(Evaluated(iteration=2, evaluation=done, results=(passed,))),
    ] == lines


def test_J11_what_was_not_checked_is_said_if_nothing_was_run():
    done = SatisfactionEvaluation(overall_score=0.8, done=True, by="program")
    ran = CheckResult(kind="example", name="f() == 1", state="passed")
    lint = CheckResult(kind="diagnostic", name="ruff", state="passed")
    told = {
        name: "Written, but not tested"
        in evaluation_text(Evaluated(iteration=1, evaluation=one, results=seen))
        for name, one, seen in (
            ("nothing", done, ()),
            ("a linter", done, (lint,)),
            ("an example", done, (lint, ran)),
            ("a judge", SatisfactionEvaluation(overall_score=0.9, done=True), ()),
        )
    }
    assert told == {"nothing": True, "a linter": True, "an example": False, "a judge": False}


def test_J3_a_failure_below_a_satisfied_verdict_says_why_it_does_not_count():
    done = SatisfactionEvaluation(overall_score=1.0, done=True)
    old = CheckResult(kind="test", name="make test", state="failed", before=True, detail="it failed before")
    own = CheckResult(kind="test", name="tests/test_a.py", state="failed", before=True)
    lint = CheckResult(kind="diagnostic", name="ruff", state="failed", detail="a.py:1: F401")
    event = Evaluated(iteration=1, evaluation=done, results=(old, lint, own))
    assert evaluation_text(event) == (
        "⚖ Satisfied\n  Checks: 1 failed\n"
        "  – failed before this request, too, so not counted: make test, tests/test_a.py\n"
        "  – failed, which does not decide by itself: ruff"
    )
    set_language("ja")
    objective = end_attempt(TaskObjective(request="x"), done, (old, lint))
    shown = goal_text(state(objective)).splitlines()
    assert "  – 依頼の前から失敗していたので、評価に含めません: make test" in shown
    assert "  ✗ ruff: a.py:1: F401" in shown


def test_J9_a_good_verdict_is_not_shown_below_an_answer_that_changed_nothing():
    done = SatisfactionEvaluation(overall_score=1.0, done=True)
    wrote = ActionFinished(
        action_id="a",
        operation="file_ops.write_file",
        outcome="ok",
        text="",
        changed=("a.txt",),
        evidence_id="e1",
    )
    describe = Describer()
    assert describe(Evaluated(iteration=1, evaluation=done)) is None
    assert describe(Evaluated(iteration=1, evaluation=VERDICT)) is not None
    describe(wrote)
    assert describe(Evaluated(iteration=1, evaluation=done)) is not None


def test_J9_where_no_model_found_requirements_that_is_said():
    items = (RequirementItem(requirement="a"),)
    assert "request itself" in requirements_line(RequirementsFound(requirements=items, by="program"))


@pytest.mark.parametrize("language", ["ja", "en"])
def test_M4_checks_have_names_in_the_language_of_the_user(language: str):
    set_language(language)
    names = [check_name(CheckResult(kind="example", name=f"{kind}a.py", state="failed")) for kind in KINDS]
    shown = {
        "ja": ["a.py の doctest", "a.py の構文", "a.py"],
        "en": ["doctests of a.py", "syntax of a.py", "a.py"],
    }
    assert names == shown[language]


def test_J8_an_answer_that_needed_no_verdict_is_not_called_unjudged():
    set_language("ja")
    asked = Request(
        request_id="r1", text="?", objective=TaskObjective(request="戻せますか？"), outcome="done"
    )
    shown = goal_text(AgentState(request=asked))
    assert "まだ評価していません" not in shown
    assert "✓ 完了" in shown
