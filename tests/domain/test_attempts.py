"""Updates of an objective by events (J1, J4, J6)."""

from duckflow.domain.decision import Action
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.objective import (
    MOST_ATTEMPTS,
    MOST_LINES,
    begin_attempt,
    digest_of,
    end_attempt,
    learn,
    note_list,
    note_result,
    renew,
)
from duckflow.domain.work.objective import (
    ExecutionPlan,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
    TaskObjective,
)

READ = Action(operation="file_ops.read_file", args={"path": "a.py"})
WRITE = Action(operation="file_ops.write_file", args={"path": "a.py", "content": "x"})
START = TaskObjective(request="Make a.py")


def verdict(score=0.5, **fields):
    return SatisfactionEvaluation(overall_score=score, done=score >= 0.8, **fields)


def test_a_list_is_the_same_whatever_reason_is_given_and_however_its_arguments_are_ordered():
    same = Action(operation=WRITE.operation, args={"content": "x", "path": "a.py"}, reasoning="again")
    assert digest_of([WRITE]) == digest_of([same])
    assert digest_of([WRITE, READ]) != digest_of([READ, WRITE])
    assert digest_of([WRITE]) != digest_of([WRITE.model_copy(update={"args": {"path": "a.py"}})])
    half_a_pair = Action(operation="x", args={"text": "\ud800"})
    assert digest_of([half_a_pair]) == digest_of([half_a_pair])


def test_what_was_tried_is_kept_with_what_it_changed_J4():
    noted = note_list(START, [READ])
    noted = note_result(noted, "e1 read a.py", "ok")
    noted = note_list(noted, [WRITE])
    noted = note_result(noted, "e2 wrote a.py", "ok", changed=True)
    read, wrote = noted.current.tried
    assert (read.digest, read.changed, read.revision) == (digest_of([READ]), False, 0)
    assert (wrote.digest, wrote.changed, wrote.revision) == (digest_of([WRITE]), True, 1)
    assert noted.revision == 1
    assert noted.results == ("e1 read a.py", "e2 wrote a.py")
    assert note_list(noted, []) == noted


def test_the_background_changes_files_but_not_what_the_list_of_the_chat_did():
    noted = note_result(note_list(START, [READ]), "e1 wrote b.py", "ok", changed=True, background=True)
    assert noted.revision == 1
    assert not noted.current.tried[0].changed
    assert note_result(START, "e1 wrote b.py", "ok", changed=True).revision == 1


def test_errors_and_refusals_are_kept_apart():
    noted = note_result(START, "e1 a.py:\n no such file", "failed")
    noted = note_result(noted, "e2 delete: the user said no", "refused")
    noted = note_result(noted, "e3 stopped", "unknown")
    assert noted.current.errors == ("e1 a.py: no such file", "e3 stopped")
    assert noted.current.refused == ("e2 delete: the user said no",)
    assert noted.results == ()


def test_a_verdict_ends_the_attempt_scores_the_requirements_and_is_counted_J1():
    wanted = replace(START, requirements=(RequirementItem(requirement="a"), RequirementItem(requirement="b")))
    begun = begin_attempt(wanted, ExecutionPlan(strategy="first", steps=("s1", " "), constraints=("no net",)))
    found = RequirementScore(requirement="b", priority=1, score=0.9, evidence=("e1",))
    ended = end_attempt(begun, verdict(0.45, requirement_scores=(found,), missing_aspects=("a",)))
    assert [(one.requirement, one.satisfaction, one.evidence) for one in ended.requirements] == [
        ("a", 0.0, ()),
        ("b", 0.9, ("e1",)),
    ]
    (attempt,) = ended.attempts
    assert (attempt.number, attempt.strategy, attempt.plan) == (1, "first", ("s1",))
    assert (attempt.score, attempt.done, attempt.lessons) == (0.45, False, ("a",))
    assert (ended.current.number, ended.current.strategy) == (2, "")
    assert (ended.iterations, ended.satisfaction, ended.strategies) == (1, 0.45, ("first",))
    assert ended.learned_constraints == ("no net",)


def test_only_attempts_that_did_not_satisfy_have_failed_J4():
    ended = end_attempt(end_attempt(START, verdict(0.5)), verdict(0.9))
    assert [one.number for one in ended.failed_attempts] == [1]


def test_evaluations_are_counted_between_two_answers_of_the_user_J6():
    objective = end_attempt(end_attempt(TaskObjective(request="x"), verdict()), verdict())
    assert objective.iterations == 2
    again = renew(objective, "and in blue")
    assert (again.iterations, len(again.attempts)) == (0, 2)
    assert again.request == "x\n\nand in blue"
    assert again.revision == objective.revision + 1
    assert renew(objective).request == "x"


def test_what_can_grow_is_bounded():
    objective = START
    for number in range(60):
        action = READ.model_copy(update={"args": {"path": str(number)}})
        objective = note_result(note_list(objective, [action]), f"e{number} " + "word " * 100, "ok")
    assert len(objective.current.tried) == 50
    assert len(objective.current.results) == MOST_LINES
    assert max(map(len, objective.current.results)) == 200
    objective = learn(objective, [*(f"c{n}" for n in range(60)), "c59", " "])
    assert objective.learned_constraints[-1] == "c59"
    assert len(objective.learned_constraints) == MOST_LINES
    for _ in range(MOST_ATTEMPTS + 5):
        objective = renew(end_attempt(objective, verdict()), "more " * 500)
    assert len(objective.attempts) == MOST_ATTEMPTS
    assert objective.attempts[-1].number == MOST_ATTEMPTS + 5
    assert len(renew(objective, "more " * 500_000).request) < 201_000
    assert objective.request.startswith("Make a.py")
