"""The program computes the whole from the parts (J3)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.reading.fitting import fit
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import Evidence, RequirementItem
from duckflow.evaluation.verdict import compute_verdict, objections
from duckflow.services.evaluation import VerdictDraft
from fakes.cases import case, scored, seen, verdict
from fakes.rows import every_row


def judged(made, *scores, **fields):
    draft, faults = fit(VerdictDraft, json.loads(verdict(*scores, **fields)))
    assert not faults
    return compute_verdict(made, draft)


@every_row(
    ("priorities", "scores", "overall"),
    [
        ((1,), (1.0,), 1.0),
        ((3,), (0.5,), 0.5),
        ((1, 2), (1.0, 0.0), 0.6),
        ((1, 2), (0.0, 1.0), 0.4),
        ((1, 3), (1.0, 0.0), 0.75),
        ((2, 3), (1.0, 0.0), 0.666667),
        ((1, 2, 3), (1.0, 1.0, 0.0), 0.833333),
        ((1, 2, 3), (0.0, 1.0, 1.0), 0.5),
        ((1, 1, 3), (1.0, 0.5, 1.0), 0.785714),
        ((1, 1, 1), (0.8, 0.8, 0.8), 0.8),
        ((1, 2, 3), (0.8, 0.8, 0.8), 0.8),
    ],
)
def test_priorities_weigh_three_two_and_one_J3(priorities, scores, overall):
    parts = [scored(f"part {place}", score, "e1") for place, score in enumerate(scores, start=1)]
    found = judged(case(*priorities), *parts)
    assert found.overall_score == overall
    assert found.done == (overall >= 0.8)
    assert found.caps == ()


@every_row(
    ("evidence", "score", "cap"),
    [
        (["e1"], 1.0, None),
        (["e9", "e2"], 1.0, None),
        (["[E2]"], 1.0, None),
        (["e1, e2"], 1.0, None),
        (["e1: created a.py"], 1.0, None),
        ([], 0.5, "no_evidence"),
        (["e3"], 0.5, "unknown_evidence"),
        (["e1.txt"], 0.5, "no_evidence"),
        (["reply"], 0.5, "weak_evidence"),
        (["I saw it"], 0.5, "no_evidence"),
    ],
)
def test_a_score_without_evidence_that_exists_counts_half_at_most_J3(evidence, score, cap):
    found = judged(case(), scored("part 1", 1.0, *evidence))
    (part,) = found.requirement_scores
    assert (part.score, part.cap, part.claimed) == (score, cap, 1.0)
    assert found.overall_score == score
    assert found.caps == ((cap,) if cap else ())
    assert set(part.evidence) <= {"e1", "e2"}


def test_J3_everything_that_lowers_a_score_is_told_to_the_evaluator_and_names_usable_evidence():
    made = case(1, 1, 1, evidence=(*seen("e1", "e2"), *seen("e3", supports="nothing")))
    draft, _ = fit(
        VerdictDraft, json.loads(verdict(scored(1, 1.0, "e42"), scored(2, 1.0, "e3"), scored(3, 0.9)))
    )
    assert draft is not None
    assert objections(made, draft) == (
        "requirement 1: e42 does not exist. These ids can prove it: e1, e2",
        "requirement 2: e3 does not prove it: it failed, or it only read something. "
        "These ids can prove it: e1, e2",
        "requirement 3: its score cites no evidence. These ids can prove it: e1, e2",
    )


@every_row(
    ("score", "fields", "asked"),
    [
        (1.0, {}, ()),
        (0.5, {"missing_aspects": ["a test"]}, ()),
        (0.5, {"quality_assessment": "Half of it."}, ()),
        (0.5, {"quality_assessment": ""}, ("missing_aspects: say what is missing",)),
    ],
)
def test_J3_a_low_score_without_a_reason_goes_back_to_the_evaluator(score, fields, asked):
    draft, _ = fit(VerdictDraft, json.loads(verdict(scored(1, score, "e1"), **fields)))
    assert draft is not None
    assert objections(case(), draft) == asked


def test_a_low_score_needs_no_proof_J3():
    (part,) = judged(case(), scored("part 1", 0.3)).requirement_scores
    assert (part.score, part.cap) == (0.3, None)


def test_what_the_evaluator_forgot_scores_nothing_J3():
    found = judged(case(1, 1), scored("part 1", 1.0, "e1"))
    assert [part.score for part in found.requirement_scores] == [1.0, 0.0]
    assert found.requirement_scores[1].cap == "forgotten"
    assert (found.overall_score, found.done, found.caps) == (0.5, False, ("forgotten",))


def test_an_unreadable_verdict_is_never_done_J3():
    found = compute_verdict(case(1, 2), None)
    assert (found.overall_score, found.done, found.by) == (0.0, False, "nobody")
    assert [part.score for part in found.requirement_scores] == [0.0] * 2


def test_without_a_judge_only_what_was_run_settles_it_J2():
    passed = CheckResult(kind="test", name="test_a.py", state="passed", binding=True, evidence_id="e3")
    failed = CheckResult(kind="example", name="f() == 1", state="failed", binding=True, evidence_id="e3")
    good = compute_verdict(case(1, 2, verification="passed", checks=(passed,)), None)
    assert (good.overall_score, good.done, good.by) == (0.8, True, "program")
    assert {part.evidence for part in good.requirement_scores} == {("e3",)}
    bad = compute_verdict(case(1, 2, verification="failed", checks=(failed,)), None)
    assert (bad.done, bad.by, bad.caps) == (False, "program", ("failing_verification",))
    assert "f() == 1" in bad.missing_aspects[0]


def evidence(supports):
    return (Evidence(evidence_id="e1", text="…", supports=supports),)


@every_row(
    ("asks_for", "supports", "information", "done"),
    [
        ("change", "change", False, True),
        ("change", "reading", False, False),
        ("change", "nothing", False, False),
        ("information", "change", False, True),
        ("information", "reading", False, True),
        ("information", "nothing", False, False),
        ("change", "reading", True, False),
        (None, "change", False, True),
        (None, "reading", False, False),
        (None, "reading", True, True),
        (None, "nothing", True, False),
    ],
)
def test_failures_support_nothing_and_reading_supports_no_change_J3(asks_for, supports, information, done):
    items = (RequirementItem(requirement="part 1", asks_for=asks_for),)
    made = case(requirements=items, evidence=evidence(supports), information=information)
    assert judged(made, scored(1, 1.0, "e1")).done is done


def test_a_reply_for_which_nothing_was_looked_up_stands_for_itself_in_a_session_with_evidence_J2():
    assert judged(case(**INFORMATION, looked_up=False), scored(1, 0.9, "reply")).done


def test_nothing_wanted_is_nothing_met():
    found = judged(case(requirements=()), scored("part 1", 1.0, "e1"))
    assert (found.overall_score, found.done, found.caps) == (0.0, False, ("no_requirements",))


def test_a_failing_verification_keeps_the_whole_below_the_mark_J3():
    found = judged(case(verification="failed"), scored("part 1", 1.0, "e1"))
    assert (found.overall_score, found.done, found.caps) == (0.79, False, ("failing_verification",))
    assert found.requirement_scores[0].score == 1.0
    assert judged(case(verification="failed"), scored("part 1", 0.4, "e1")).overall_score == 0.4
    assert judged(case(verification="passed"), scored("part 1", 1.0, "e1")).done


@every_row(
    ("said", "place"),
    [
        ("write the parser", 0),
        ("Write the parser.", 0),
        ("1. write the parser (priority 1)", 0),
        ("1", 0),
        ("#2", 1),
        ("2)", 1),
        ("2. tests", 1),
        ("2. write the parser", 0),
        ("write the tests for the parsers", 1),
        ("3.5 files exist", 2),
        ("7", None),
        ("0", None),
        ("the moon is round", None),
        ("", None),
    ],
)
def test_a_score_is_for_the_requirement_it_names_by_words_or_by_number(said, place):
    texts = ("write the parser", "write the tests for the parser", "3.5 files exist")
    items = tuple(RequirementItem(requirement=text) for text in texts)
    found = judged(case(requirements=items), scored(said, 1.0, "e1"))
    met = [at for at, part in enumerate(found.requirement_scores) if part.score]
    assert met == ([] if place is None else [place])


def test_an_evaluator_who_contradicts_himself_is_taken_at_the_lower_word():
    found = judged(case(), scored("part 1", 1.0, "e1"), scored("1", 0.2, "e1"))
    assert found.overall_score == 0.2


def test_praise_for_something_else_is_never_done_J3():
    found = judged(case(1, 1), scored("everything", 1.0, "e1"), scored("all of it", 1.0, "e2"))
    assert (found.overall_score, found.done) == (0.0, False)


INFORMATION = {"information": True, "reply": "It parses dates.", "request": "What does a.py do?"}


def test_a_reply_with_sources_is_judged_by_them_J2():
    assert judged(case(**INFORMATION), scored(1, 0.9, "e1")).done
    assert not judged(case(**INFORMATION), scored(1, 0.9, "reply")).done


def test_a_reply_without_any_source_stands_for_itself_J2():
    assert judged(case(**INFORMATION, evidence=()), scored(1, 0.9, "reply")).done
    assert not judged(case(evidence=()), scored(1, 0.9, "reply")).done


def test_having_read_a_file_is_no_answer_J2():
    found = judged(case(**{**INFORMATION, "reply": " "}), scored(1, 1.0, "e1"))
    assert (found.overall_score, found.done) == (0.5, False)
    assert "no_reply" in found.caps


def test_what_the_evaluator_says_beside_the_scores_is_kept_in_bounds_J2():
    found = judged(
        case(),
        scored(1, 0.9, "e1"),
        missing_aspects=["no\ntests", "no\ntests", " ", *(f"thing {n}" for n in range(20))],
        quality_assessment="word " * 1000,
    )
    assert found.missing_aspects[:2] == ("no tests", "thing 0")
    assert len(found.missing_aspects) == 8
    assert len(found.quality_assessment) == 1000
    assert (found.done, found.completion_recommendation, found.by) == (True, True, "model")


@every_row(
    ("scores", "recommended", "cap"),
    [
        ((0.85, 0.85), True, None),
        ((0.85, 0.85), None, None),
        ((0.85, 0.85), False, "not_recommended"),
        ((0.7, 1.0), True, "must_not_met"),
    ],
)
def test_done_needs_every_must_and_an_evaluator_that_does_not_say_no_J3(scores, recommended, cap):
    said = [scored(place, score, "e1") for place, score in enumerate(scores, start=1)]
    found = judged(case(1, 1), *said, completion_recommendation=recommended)
    assert found.done is (cap is None)
    assert found.caps == ((cap,) if cap else ())
    assert (found.overall_score >= 0.8) is found.done


IDS = st.sampled_from(["e1", "e2", "e3", "reply", "", "nonsense"])
SCORES = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "3", "4", "part 2", "nothing", "1. part 1"]),
        st.floats(0, 1),
        st.lists(IDS, max_size=3),
    ),
    max_size=6,
)
PRIORITIES = st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3)


def drafted(said):
    return VerdictDraft.model_validate(
        {"requirement_scores": [scored(name, score, *ids) for name, score, ids in said]}
    )


@given(PRIORITIES, SCORES, st.sampled_from(["passed", "failed", "none"]), st.booleans())
def test_the_whole_lies_between_its_parts_and_never_above_what_was_claimed(
    priorities, said, verification, information
):
    made = case(*priorities, verification=verification, information=information)
    found = compute_verdict(made, drafted(said))
    parts = [part.score for part in found.requirement_scores]
    assert len(parts) == len(priorities)
    assert 0 <= found.overall_score <= max(parts) + 1e-6
    assert found.done == (found.overall_score >= 0.8)
    assert all(part.score <= (part.claimed or 0) for part in found.requirement_scores)
    assert verification != "failed" or found.overall_score < 0.8
    assert all(part.score <= 0.5 or part.evidence for part in found.requirement_scores)


@given(PRIORITIES, SCORES, st.integers(0, 5), st.sampled_from(["e1", "e2", "e3", "reply"]))
def test_citing_more_evidence_never_lowers_a_score(priorities, said, which, more):
    fuller = [
        (name, score, [*ids, more] if at == which else ids) for at, (name, score, ids) in enumerate(said)
    ]
    before, after = (compute_verdict(case(*priorities), drafted(one)) for one in (said, fuller))
    assert after.overall_score >= before.overall_score


@given(PRIORITIES, SCORES)
def test_finding_more_never_lowers_a_score(priorities, said):
    before = compute_verdict(case(*priorities), drafted(said))
    after = compute_verdict(case(*priorities, evidence=seen("e1", "e2", "e3")), drafted(said))
    assert after.overall_score >= before.overall_score


@given(PRIORITIES, SCORES, st.integers(0, 5), st.floats(0, 1))
def test_a_higher_score_never_lowers_the_whole(priorities, said, which, higher):
    raised = [
        (name, max(score, higher) if at == which else score, ids)
        for at, (name, score, ids) in enumerate(said)
    ]
    before, after = (compute_verdict(case(*priorities), drafted(one)) for one in (said, raised))
    assert after.overall_score >= before.overall_score


@every_row(
    ("asks_for", "reply", "proven"),
    [
        ("change", "わかりました。何も消していません。", True),
        ("information", "わかりました。何も消していません。", True),
        ("information", "I deleted `a.txt` and created `b.txt`.", False),
    ],
)
def test_J3_what_the_user_called_off_is_settled_by_words_and_by_their_refusal(asks_for, reply, proven):
    """A command ran on a copy, and the user said no and "never mind": nothing is left to try again."""
    made = case(
        requirements=(RequirementItem(requirement="何も消さずにやめる", asks_for=asks_for),),
        evidence=(*seen("e1"), *seen("e2", supports="nothing")),
        unwanted=("e2 shell.take_over : The user said no.",),
        reply=reply,
        changed=False,
        looked_up=True,
    )
    found = judged(made, scored(1, 1.0, "e2", "reply"))
    assert found.done is proven
