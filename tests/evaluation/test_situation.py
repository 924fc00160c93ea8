"""After the last iteration: the report, and what each choice tells the model (SPEC J5)."""

from duckflow.domain.attempts import end_attempt, note_result, set_requirements
from duckflow.domain.objective import RequirementItem, SatisfactionEvaluation, TaskObjective
from duckflow.evaluation.situation import ESCALATION_CHOICES, escalation_wish, situation_of


def unmet(**fields):
    objective = set_requirements(
        TaskObjective(request="Make\na.py"), [RequirementItem(requirement="it prints hello")]
    )
    evaluation = SatisfactionEvaluation(overall_score=0.456, done=False, **fields)
    return end_attempt(note_result(objective, "e1 read b.py", "ok"), evaluation)


def test_the_report_has_all_six_parts_J5():
    made = unmet(missing_aspects=("no test", "no loop"), quality_assessment="Half of it works.")
    assert situation_of(made) == {
        "request": "Make a.py",
        "attempts": 1,
        "most": 3,
        "score": "0.46",
        "missing": "  • no test\n  • no loop",
        "collected": "  • e1 read b.py",
        "quality": "Half of it works.",
    }


def test_where_the_evaluator_names_nothing_the_unmet_requirements_are_missing_J5():
    assert situation_of(unmet())["missing"] == "  • it prints hello"
    assert situation_of(TaskObjective(request="x"))["quality"] == ""


def test_the_report_stays_short_J5():
    made = unmet(missing_aspects=tuple(f"{n} " + "word " * 200 for n in range(9)))
    assert len(str(situation_of(made)["missing"]).splitlines()) == 5
    assert max(map(len, str(situation_of(made)["missing"]).splitlines())) < 170


def test_there_are_five_choices_and_each_that_goes_on_tells_the_model_something_else_J5():
    assert ESCALATION_CHOICES == ("more_detail", "another_approach", "accept", "technical_help", "stop")
    going_on = ("more_detail", "another_approach", "technical_help")
    told = {choice: escalation_wish(choice, unmet(), "in blue") for choice in ESCALATION_CHOICES}
    assert len({told[choice] for choice in going_on}) == 3
    assert all(told[choice].endswith("in blue") for choice in going_on)
    assert "what was tried before" in told["another_approach"]
    assert told["accept"] == told["stop"] == "in blue"
