"""A small model is not asked if facts decide (J2)."""

from duckflow.domain.work.checks import CheckResult
from duckflow.evaluation.facts import Fact, as_evidence, verification_of
from duckflow.evaluation.verdict import judge_by_facts
from fakes.cases import case, seen
from fakes.rows import every_row


def fact(path="a.py", state="parses", content="def is_empty(): ...", detail="there"):
    return Fact(path=path, state=state, content=content, detail=detail)


def judged(request, *facts, priorities=(1,), **fields):
    evidence = (*seen("e1"), *as_evidence(facts, 2))
    known = {"verification": verification_of(facts)}
    return judge_by_facts(case(*priorities, request=request, evidence=evidence, **{**known, **fields}), facts)


NAMES = "Create a.py with `peek`, push_all, fib(n) and requirements like operator.mod; use b.py"


@every_row(
    ("request_text", "facts"),
    [
        ("Create a.py that prints hello", [fact()]),
        ("a.pyを作って", [fact()]),
        (NAMES, [fact()]),
        ("Add notes.md", [fact("notes.md", "readable", "# Notes")]),
        ("Create an empty package", [fact("a/__init__.py", "empty", "")]),
        ("Draw a picture", [fact("a.png", "unread", "")]),
        ("Create a base class", [fact(detail="there; does nothing: f")]),
        ("Remove tmp.log", [fact("tmp.log", "gone", "")]),
        ("Rename a.py to b.py", [fact("a.py", "gone", ""), fact("b.py")]),
        ("Write a.py and b.json", [fact(), fact("b.json", content="{}")]),
    ],
)
def test_J11_nothing_failed_is_done_whatever_words_the_request_has(request_text, facts):
    found = judged(request_text, *facts, priorities=(1, 2))
    assert found is not None
    assert (found.overall_score, found.done, found.by, found.caps) == (0.8, True, "program", ())
    assert found.requirement_scores[0].evidence == tuple(f"e{n}" for n in range(2, 2 + len(facts)))
    assert [part.score for part in found.requirement_scores] == [0.8, 0.8]


@every_row(
    ("fields", "missing"),
    [
        ({"failing": ("b.py",)}, ("b.py: failed, with no success since",)),
        ({"verification": "failed"}, ()),
    ],
)
def test_J11_what_failed_is_not_done(fields, missing):
    found = judged("Create a.py", fact(), **fields)
    assert found is not None
    assert (found.done, found.overall_score, found.missing_aspects) == (False, 0.5, missing)


def test_a_command_that_passed_outweighs_a_file_that_does_not_parse():
    found = judged("Create a.py", fact(state="broken"), verification="passed")
    assert found is not None
    assert found.done


@every_row(
    ("facts", "fields"),
    [([fact()], {"information": True}), ([], {}), ([fact()], {"requirements": ()})],
)
def test_without_facts_of_a_change_a_model_has_to_look(facts, fields):
    assert judged("What does a.py do?", *facts, **fields) is None


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


def test_a_broken_file_is_not_done():
    found = judge_by_facts(case(verification="failed"), [fact(state="broken")])
    assert found is not None
    assert (found.done, found.overall_score) == (False, 0.5)


def test_J11_what_was_run_is_cited_behind_the_files_it_was_run_on():
    facts = [fact(), fact("b.py", state="broken", detail="line 1: no")]
    ran = CheckResult(kind="example", name="f() == 1", state="passed", evidence_id="e4")
    evidence = (*as_evidence(facts, 2), *as_evidence([ran], 4))
    made = case(request="Create a.py", evidence=evidence, checks=(ran,), verification="failed")
    found = judge_by_facts(made, facts)
    assert found is not None
    assert found.requirement_scores[0].evidence == ("e3",)


def test_J11_a_change_that_was_not_made_is_not_done_whatever_a_model_would_say():
    read = seen("e1", supports="reading")
    for made, verdict in (
        (case(wants_change=True, changed=False, information=True, evidence=read), (False, "program")),
        (case(wants_change=True, changed=False, information=True, evidence=seen("e1")), None),
        (case(changed=False, information=True, evidence=read), None),
        (case(changed=False, information=True, evidence=read, unwanted=("e2 a.py",)), (False, "nobody")),
        (case(changed=False, information=True, evidence=read, failing=("a.py",)), (False, "nobody")),
    ):
        found = judge_by_facts(made, ())
        assert (found and (found.done, found.by)) == verdict


def test_J3_only_comments_or_another_file_than_the_named_one_are_not_done_and_the_reason_is_said():
    for fields, caps, missing in (
        ({"only_comments": True}, ("only_comments",), ()),
        ({"missed": ("b.py",)}, ("missed_file",), ("b.py",)),
        ({"missed": ("b.py",), "verification": "failed"}, ("failing_verification", "missed_file"), ("b.py",)),
    ):
        found = judged("Fix b.py", fact(), **fields)
        assert found is not None
        assert (found.done, found.caps, found.missing_aspects) == (False, caps, missing)
