"""Where facts settle it, a small model is not asked (SPEC J2)."""

from duckflow.domain.objective import EvaluationRules
from duckflow.evaluation.facts import Fact, as_evidence, verification_of
from duckflow.evaluation.mentions import unseen_names
from duckflow.evaluation.program_verdict import judge_by_facts
from fakes.cases import case, seen
from fakes.rows import every_row


def fact(path="a.py", state="parses", content="def is_empty(): ...", detail="there", stubs=()):
    return Fact(path=path, state=state, content=content, detail=detail, stubs=stubs)


def judged(request, *facts, priorities=(1,), **fields):
    evidence = (*seen("e1"), *as_evidence(facts, 2))
    known = {"verification": verification_of(facts), "unseen": unseen_names(request, facts)}
    return judge_by_facts(case(*priorities, request=request, evidence=evidence, **{**known, **fields}), facts)


@every_row(
    ("request_text", "facts"),
    [
        ("Create a.py that prints hello", [fact()]),
        ("a.pyを作って", [fact()]),
        ("Make something", [fact()]),
        ("Create a.py with `is_empty` in it.", [fact()]),
        ("Write is_empty() into src/a.py, please", [fact("src/a.py")]),
        ("Fix ./a.py!", [fact()]),
        ("Fix a.py", [fact("lib/a.py")]),
        ("Add notes.md", [fact("notes.md", "readable", "# Notes")]),
        ("Remove tmp.log", [fact("tmp.log", "gone", "")]),
        ("Rename a.py to b.py", [fact("a.py", "gone", ""), fact("b.py")]),
        ("Write a.py and b.json", [fact(), fact("b.json", content="{}")]),
    ],
)
def test_work_that_shows_all_the_request_names_is_done(request_text, facts):
    found = judged(request_text, *facts, priorities=(1, 2))
    assert found is not None
    assert (found.overall_score, found.done, found.by, found.caps) == (0.8, True, "program", ())
    assert found.requirement_scores[0].evidence == tuple(f"e{n}" for n in range(2, 2 + len(facts)))
    assert [part.score for part in found.requirement_scores] == [0.8, 0.8]


@every_row(
    ("request_text", "facts", "fields"),
    [
        ("What does a.py do?", [fact()], {"information": True}),
        ("Create a.py", [], {}),
        ("Create a.py and b.py", [fact()], {}),
        ("Use a.py in c.py", [fact("c.py")], {}),
        ("Create a.py with push_all", [fact()], {}),
        ("Create a.py with `peek`", [fact()], {}),
        ("Create a.py with a function fib(n)", [fact()], {}),
        ("Create a.py", [fact(state="empty", content="")], {}),
        ("Create a.py", [fact(state="unread", content="")], {}),
        ("Create a.py", [fact(stubs=("f",))], {}),
        ("Create a.py", [fact()], {"failing": ("b.py",)}),
        ("Create a.py", [fact()], {"verification": "failed"}),
        ("Create a.py", [fact(state="broken")], {"verification": "passed"}),
        ("Create a.py", [fact()], {"requirements": ()}),
    ],
)
def test_where_facts_do_not_settle_it_a_model_has_to_look(request_text, facts, fields):
    assert judged(request_text, *facts, **fields) is None


@every_row("state", ["broken", "missing", "left"])
def test_a_file_that_is_not_as_it_should_be_is_not_done_and_the_reason_is_said_J3(state):
    found = judged("Create a.py", fact("b.py"), fact(state=state, detail="line 1: no"))
    assert found is not None
    assert (found.done, found.by, found.caps) == (False, "program", ("failing_verification",))
    assert found.overall_score == 0.5
    assert found.missing_aspects == ("a.py: line 1: no",)
    assert found.requirement_scores[0].evidence == ("e3",)


def test_only_the_newest_checks_are_cited():
    facts = [fact()]
    evidence = (*as_evidence(facts, 2), *as_evidence(facts, 7))
    found = judge_by_facts(case(request="Create a.py", evidence=evidence), facts)
    assert found is not None
    assert found.requirement_scores[0].evidence == ("e7",)


def test_no_numbers_make_a_broken_file_done():
    rules = EvaluationRules(done_at=0.3, unproven_at_most=0.9)
    found = judge_by_facts(case(verification="failed"), [fact(state="broken")], rules)
    assert found is not None
    assert (found.done, found.overall_score) == (False, 0.29)
