"""Input for the next attempt, and actions that it may not repeat (J4)."""

from duckflow.domain.decision import Action
from duckflow.domain.reduce.objective import (
    begin_attempt,
    end_attempt,
    give_up_attempt,
    learn,
    note_list,
    note_result,
    renew,
)
from duckflow.domain.work.objective import (
    ExecutionPlan,
    RequirementScore,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.evaluation.continuation import TRIED_BEFORE, build_continuation, equal_to_failed
from duckflow.prompts.continuation import SMALL_TOLD, TOLD, continuation_text, difference_text, plan_text
from duckflow.services.evaluation import MissingInfoAnalysis, MissingItem
from fakes.rows import every_row

READ = Action(operation="file_ops.read_file", args={"path": "a.py"})
WRITE = Action(operation="file_ops.write_file", args={"path": "a.py", "content": "x"})
TEST = Action(operation="shell.run", args={"command": "pytest"})
UNMET = SatisfactionEvaluation(
    overall_score=0.55,
    done=False,
    requirement_scores=(
        RequirementScore(requirement="it is small", priority=3, score=0.5, claimed=0.9, cap="no_evidence"),
        RequirementScore(requirement="a.py exists", priority=1, score=0.9, evidence=("e2",)),
        RequirementScore(requirement="it prints hello", priority=2, score=0.3, evidence=("e2",)),
        RequirementScore(requirement="it is tested", priority=1, score=0.0, cap="forgotten"),
    ),
    missing_aspects=("no test was run",),
    caps=("failing_verification",),
)
MISSING = MissingInfoAnalysis(
    missing=(MissingItem(what="run the tests"), MissingItem(what="print hello", priority=2)),
    constraints=("there is no network",),
    alternatives=("write it by hand", "use the template"),
)


def tried(*lists, strategy="use the template", evaluation=UNMET, objective=None):
    """An objective after one more attempt with these lists; a write changes a file."""
    objective = objective or TaskObjective(request="Make a.py print hello")
    objective = begin_attempt(objective, ExecutionPlan(strategy=strategy, steps=("copy it",)))
    for actions in lists:
        objective = note_list(objective, actions)
        for action in actions:
            changes = action.operation == "file_ops.write_file"
            objective = note_result(objective, f"e1 {action.operation}", "ok", changed=changes)
    return end_attempt(objective, evaluation)


def test_all_that_is_known_is_in_the_context_J4():
    objective = learn(tried([WRITE]), ["only Python 3.11"])
    objective = note_result(objective, "e3 b.py: no such file", "failed")
    for refused in (
        "e4 delete: not allowed",
        "e5 shell.take_over : thrown away",
        f"e6 write: {TRIED_BEFORE}",
    ):
        objective = note_result(objective, refused, "refused")
    found = build_continuation(end_attempt(objective, UNMET), MISSING)
    assert (found.score, found.needed) == (0.55, 0.8)
    assert [one.number for one in found.attempts] == [1, 2]
    assert found.errors == ("e3 b.py: no such file",)
    assert found.unavailable == ("e4 delete: not allowed", "e5 effects of a command : thrown away")
    assert found.partial_successes == ("a.py exists [e2]", "in part (0.30): it prints hello [e2]")
    assert found.problems == (
        "no test was run",
        "not met (0.00): it is tested",
        "not met (0.30): it prints hello",
        "not met (0.50, nothing shows it): it is small",
    )
    assert found.improvements == ("run the tests", "print hello")
    assert found.alternatives == ("write it by hand",)
    assert found.failed_approaches == ()
    assert found.limitations == ("only Python 3.11", "there is no network")


def test_J4_only_the_user_rules_out_a_strategy():
    objective = tried([WRITE], strategy="the right way, done badly")
    objective = begin_attempt(objective, ExecutionPlan(strategy="use the template"))
    objective = give_up_attempt(note_list(objective, [READ]), forbidden=True)
    assert build_continuation(objective, MISSING).failed_approaches == ("use the template",)


def test_the_context_is_bounded_whatever_there_is_J4():
    long = "word " * 200
    many = tuple(MissingItem(what=f"{n} {long}") for n in range(30))
    objective = None
    for number in range(8):
        objective = tried([WRITE], strategy=f"{number} {long}", objective=objective)
        objective = learn(objective, [f"{number} {n} {long}" for n in range(10)])
    found = build_continuation(objective, MissingInfoAnalysis(missing=many))
    assert len(found.attempts) == 3
    assert len(found.improvements) == len(found.limitations) == 6
    assert max(map(len, (*found.improvements, *found.limitations, *found.failed_approaches))) <= 240
    assert len(continuation_text(found)) <= TOLD
    assert len(continuation_text(found, SMALL_TOLD)) <= SMALL_TOLD


def test_the_next_prompt_says_what_is_wrong_first_J4():
    objective = note_result(tried([WRITE]), "e3 b.py: no such file", "failed")
    objective = end_attempt(objective, UNMET)
    text = continuation_text(build_continuation(objective, MISSING))
    assert text.startswith(
        "The request is not met yet: 0.55 (before: 0.55) of the 0.80 that are needed. Attempt 3"
    )
    order = [
        "- no test was run",
        "- a.py exists [e2]",
        "- run the tests",
        "- there is no network",
        "- write it by hand",
        "- e3 b.py: no such file",
        "1. use the template (0.55); planned: copy it; brought: e1 file_ops.write_file; learned: no test",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_J4_the_working_model_is_told_what_the_verdict_adds_and_not_its_own_past():
    objective = tried([WRITE], objective=tried([READ]))
    text = difference_text(build_continuation(objective, MISSING))
    assert text.startswith("The request is not met yet: 0.55 (before: 0.55) of the 0.80")
    assert "no test was run" in text
    assert not any(past in text for past in ("Attempts so far", "Errors so far", "use the template"))


def test_a_plan_is_told_with_what_holds_and_what_to_avoid_J4():
    plan = ExecutionPlan(
        strategy="by hand",
        steps=("write it", "check it"),
        success_criteria=("it prints hello",),
        constraints=("no network",),
        avoid=("the template (0.55)",),
    )
    assert plan_text(plan) == (
        "Strategy: by hand\nSteps\n1. write it\n2. check it\nDone when\n- it prints hello\n"
        "Keep to\n- no network\nAvoid\n- the template (0.55)"
    )


@every_row(
    ("lists", "wanted", "equal"),
    [
        ([[WRITE]], [WRITE], True),
        ([[READ], [WRITE], [TEST]], [WRITE], True),
        ([[WRITE, TEST]], [WRITE, TEST], True),
        ([[WRITE, TEST]], [WRITE], False),
        ([[READ]], [READ], True),
        ([[READ], [WRITE]], [READ], False),
        ([[WRITE], [TEST]], [TEST], False),
        ([[TEST], [WRITE]], [TEST], False),
        ([[READ, TEST]], [READ, TEST], True),
        ([[READ]], [], False),
        ([], [READ], False),
    ],
)
def test_a_list_of_a_failed_attempt_is_refused_unless_files_have_changed_since_J4(lists, wanted, equal):
    objective = tried(*lists)
    assert equal_to_failed(wanted, objective.failed_attempts, objective.revision) == equal


def test_the_same_command_after_an_edit_is_no_repetition_J4():
    objective = note_result(note_list(tried([TEST]), [WRITE]), "e2 wrote", "ok", changed=True)
    assert not equal_to_failed([TEST], objective.failed_attempts, objective.revision)


def test_after_a_word_of_the_user_only_what_changed_files_stays_refused_J4():
    objective = renew(tried([READ], [TEST], [WRITE]))
    assert equal_to_failed([WRITE], objective.failed_attempts, objective.revision)
    assert not equal_to_failed([TEST], objective.failed_attempts, objective.revision)


def test_what_satisfied_may_be_done_again():
    good = SatisfactionEvaluation(overall_score=1.0, done=True)
    objective = tried([WRITE], evaluation=good)
    assert not equal_to_failed([WRITE], objective.failed_attempts, objective.revision)
