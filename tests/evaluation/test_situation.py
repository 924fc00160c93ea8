"""After the last iteration: the report (J5)."""

from duckflow.domain.reduce.objective import end_attempt, note_result
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import (
    RequirementItem,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.evaluation.continuation import situation_of


def unmet(**fields):
    objective = TaskObjective(
        request="Make\na.py", requirements=(RequirementItem(requirement="it prints hello"),)
    )
    evaluation = SatisfactionEvaluation(overall_score=0.456, done=False, **fields)
    return end_attempt(note_result(objective, "e1 read b.py", "ok"), evaluation)


def test_the_report_has_the_parts_that_the_verdict_knows_J5():
    made = unmet(missing_aspects=("no test", "no loop"), quality_assessment="Half of it works.")
    assert situation_of(made) == {
        "request": "Make a.py",
        "attempts": 1,
        "score": "45 %",
        "missing": "  • no test\n  • no loop",
        "quality": "Half of it works.",
        "checks": "",
    }


def test_the_report_says_what_was_run_J5_J10():
    results = (
        CheckResult(kind="test", name="test_a.py", state="passed", detail="1 passed", evidence_id="e4"),
        CheckResult(kind="example", name="f(2) == 4", state="failed", detail="came to 5", evidence_id="e5"),
        CheckResult(kind="test", name="test_b.py", state="not_run", detail="it took longer than 30 s"),
    )
    made = end_attempt(
        TaskObjective(request="x"), SatisfactionEvaluation(overall_score=0, done=False), results
    )
    assert situation_of(made)["checks"] == (
        "  • ✓ test_a.py [e4]\n  • ✗ f(2) == 4 [e5]: came to 5\n  • – test_b.py: it took longer than 30 s"
    )


def test_where_the_evaluator_names_nothing_the_unmet_requirements_are_missing_J5():
    assert situation_of(unmet())["missing"] == "  • it prints hello"
    assert situation_of(TaskObjective(request="x"))["quality"] == ""


def test_the_report_stays_short_J5():
    made = unmet(missing_aspects=tuple(f"{n} " + "word " * 200 for n in range(9)))
    assert len(str(situation_of(made)["missing"]).splitlines()) == 5
    assert max(map(len, str(situation_of(made)["missing"]).splitlines())) < 170
