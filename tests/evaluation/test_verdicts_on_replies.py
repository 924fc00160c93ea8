"""J2, J3: answers in the reply itself count in full, also in a request that changed files."""

from duckflow.domain.work.objective import EvaluationCase, Evidence, RequirementItem
from duckflow.evaluation.verdict import compute_verdict, objections
from duckflow.services.evaluation import ScoreDraft, VerdictDraft, named_requirements
from fakes.rows import every_row

DIFF = Evidence(evidence_id="e1", text="+def mul", supports="change")
LOOK = Evidence(evidence_id="e2", text="test_calc.py: add(", supports="reading")
ADD = RequirementItem(requirement="mul is there", asks_for="change")


def verdict(
    item: RequirementItem, said: ScoreDraft, *others: RequirementItem, reply: str = "test_add calls it."
):
    made = EvaluationCase(
        request="add mul, and tell me which functions call add",
        requirements=(item, *others),
        evidence=(DIFF, LOOK),
        reply=reply,
        looked_up=True,
    )
    rest = (ScoreDraft(requirement=one.requirement, score=1, evidence=("e1",)) for one in others)
    draft = VerdictDraft(requirement_scores=(said, *rest), completion_recommendation=True)
    return compute_verdict(made, draft).requirement_scores[0], objections(made, draft)


def told(asks_for=None) -> RequirementItem:
    return RequirementItem(requirement="the callers of add are told", asks_for=asks_for)


@every_row(
    ("known", "says", "evidence", "others", "score"),
    [
        ("information", None, "reply", (ADD,), 1),
        ("information", None, "e2", (ADD,), 1),
        (None, "information", "reply", (ADD,), 1),
        (None, "information", "e2", (ADD,), 1),
        (None, None, "reply", (ADD,), 0.5),
        ("change", "information", "reply", (ADD,), 0.5),
        (None, "information", "reply", (), 0.5),  # it is the whole request, which changed something
    ],
)
def test_J2_J3_the_reply_is_evidence_for_what_it_was_asked_to_tell(known, says, evidence, others, score):
    said = ScoreDraft(requirement="1", score=1, evidence=(evidence,), asks_for=says)
    counted, _ = verdict(told(known), said, *others)
    assert counted.score == score
    assert counted.evidence == ((evidence,) if score == 1 else ())


def test_J3_an_evaluator_learns_how_to_say_that_the_reply_is_the_work():
    _, wrong = verdict(told(), ScoreDraft(requirement="1", score=1, evidence=("reply",)), ADD)
    assert '"asks_for": "information"' in wrong[0]


def test_J3_an_empty_reply_answers_nothing():
    said = ScoreDraft(requirement="1", score=1, evidence=("reply",))
    assert verdict(told("information"), said, ADD, reply=" ")[0].score == 0.5


def test_J1_the_working_model_can_mark_what_the_reply_must_tell():
    lines = [
        "mul is there",
        "2. who calls it (answer) (2)",
        "(answer) why it failed",
        "an (answer) in it",
    ]
    assert [(one.requirement, one.priority, one.asks_for) for one in named_requirements(lines)] == [
        ("mul is there", 1, None),
        ("who calls it", 2, "information"),
        ("why it failed", 1, "information"),
        ("an (answer) in it", 1, None),
    ]
