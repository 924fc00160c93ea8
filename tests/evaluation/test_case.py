"""Input of an evaluation, from what was observed (J2)."""

from duckflow.domain.state import Request
from duckflow.domain.work.objective import TaskObjective
from duckflow.evaluation.facts import Fact, as_evidence
from duckflow.evaluation.verdict import build_case
from duckflow.services.evaluation import plain_requirements
from fakes.cases import seen, wanted
from fakes.rows import every_row

FACTS = (Fact(path="a.py", state="parses", content="x = 1"),)
OBJECTIVE = TaskObjective(request="Write a.py with is_empty")


def request(objective=OBJECTIVE, **fields) -> Request:
    return Request(request_id="r", text=objective.request, objective=objective, **fields)


@every_row(
    ("changed", "ran", "information"),
    [(False, False, True), (True, False, False), (False, True, False), (True, True, False)],
)
def test_what_changed_nothing_and_ran_nothing_is_a_request_for_information_J2(changed, ran, information):
    worked = request(changed=("a.py",) if changed else ())
    assert build_case(worked, "", (), (), ran=ran).information is information


def test_what_a_model_calls_it_makes_no_request_for_information_something_else_J2():
    for profile in ("file_operation", "debugging", "simple_question", None):
        made = build_case(request(profile=profile), "All done!", (), ())
        assert made.information, profile


def test_a_case_holds_what_was_wanted_seen_and_told_J2():
    evidence = (*seen("e1"), *as_evidence(FACTS, 2))
    objective = OBJECTIVE.model_copy(update={"requirements": wanted(1, 2)})
    worked = request(objective, changed=("a.py",), failing=("b.py",))
    made = build_case(worked, "Done.", evidence, FACTS, passed=False)
    assert (made.request, made.requirements, made.evidence) == (OBJECTIVE.request, wanted(1, 2), evidence)
    assert (made.reply, made.failing, made.verification) == ("Done.", ("b.py",), "failed")


def test_without_requirements_the_request_is_the_one_J1():
    made = build_case(request(), "", (), ())
    assert made.requirements == plain_requirements(OBJECTIVE.request)
