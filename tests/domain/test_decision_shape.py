"""The shape of a Decision: required fields, defaults and refused values (A1, A2, A5, E2, N)."""

import pytest
from pydantic import ValidationError

from duckflow.domain.decision import Action, Decision, StateDelta
from fakes.rows import every_row


def test_A1_the_example_of_the_published_shape_is_accepted():
    decision = Decision.model_validate(
        {
            "rationale": "…",
            "goal_consistency": "yes: …",
            "constraint_check": "yes: …",
            "next_step": "continue",
            "step": "EXECUTION",
            "prompt_pattern": "base_main",
            "state_delta": {"goal": "…"},
            "confidence": 0.9,
            "task_profile": "file_operation",
            "reply": "…",
            "actions": [
                {
                    "operation": "file_ops.write_file",
                    "args": {"path": "a.py", "content": "…"},
                    "reasoning": "…",
                }
            ],
        }
    )
    assert decision.actions[0].args == {"path": "a.py", "content": "…"}
    assert decision.state_delta == StateDelta(goal="…")


@every_row("said", [{"reply": "Hi"}, {"actions": [{"operation": "shell.run"}]}])
def test_A1_a_reply_or_an_action_is_enough(said):
    decision = Decision.model_validate(said)
    assert decision.next_step == ("continue" if decision.actions else "done")
    assert (decision.step, decision.task_profile, decision.confidence, decision.prompt_pattern) == (None,) * 4
    assert decision.state_delta == StateDelta()
    assert decision.objection is None


@every_row(
    "wrong",
    [
        {"next_step": "done"},
        {"next_step": "done", "reply": " \n"},
        {"next_step": "done", "reply": "Hi", "vitals": {}},
        {"next_step": "done", "actions": [{"operation": ""}]},
        {"next_step": "done", "actions": [{"operation": "x" * 201}]},
        {"next_step": "done", "actions": [{"operation": "x", "type": "delete"}]},
        {"next_step": "done", "actions": [{"args": {}}]},
    ],
)
def test_A1_A2_anything_else_is_refused(wrong):
    with pytest.raises(ValidationError):
        Decision.model_validate(wrong)


def test_null_stands_for_what_is_not_said():
    empty = {"state_delta": None, "rationale": None, "actions": None, "confidence": None, "step": None}
    assert Decision.model_validate({"next_step": "done", "reply": "Hi", **empty}).actions == ()
    assert Decision.model_validate({"next_step": "done", "reply": "Hi", "state_delta": ""}).reply == "Hi"
    silent = {"next_step": "done", "reply": None, "actions": [{"operation": "a"}]}
    assert Decision.model_validate(silent).reply == ""


@every_row("name", ["mode", "step", "status", "workspace", "pending_gate", "vitals", "seq"])
def test_E2_a_decision_sets_the_five_items_and_nothing_else(name):
    with pytest.raises(ValidationError):
        StateDelta.model_validate({name: "x"})


NO = [
    "no",
    "No: it breaks it",
    " NO",
    "no, it does not",
    "No. It breaks it.",
    "no\nIt breaks it",
    "**No** - it breaks",
]
NO += [
    "no way",
    "no longer",
    "no — it breaks",
    '"no"',
    "nope",
    "false",
    "False: it breaks it",
    "ＮＯ",
    "ｎｏ：だめ",
]
NO += ["いいえ", "いいえ、違います", "「いいえ」", "いえ、違います", "いえ", "ノー"]


@every_row("answer", NO)
def test_A5_an_answer_that_begins_with_no_is_an_objection(answer):
    for field in ("goal_consistency", "constraint_check"):
        assert Decision.model_validate({"reply": "x", field: answer}).objection == answer


NO_DOUBT = [
    "yes",
    "Yes: it is",
    "yes: no new file; no constraint is broken",
    "yes, no loss of marks",
    "yes and no",
]
NO_DOUBT += [
    "はい",
    "はい、いいえと言う理由はない",
    "ええ。",
    "いえば",
    "true",
    "partly",
    "maybe",
    "I think yes",
    "not yet",
    "n/a",
]
NO_DOUBT += [
    "none",
    "none broken",
    "nothing is broken",
    "not applicable",
    "nobody asked",
    "no-op",
    "no one is affected",
]
NO_DOUBT += [
    "no conflict",
    "No constraints are broken",
    "no new constraint",
    "no known issues",
    "",
    "  ",
    "ok",
    "✓",
]


@every_row("answer", [*NO_DOUBT, True, None, 0, 1, 0.9, {"no": 1}, {}, [], ["yes", "no"]], ids=repr)
def test_A5_any_other_answer_is_no_objection(answer):
    for field in ("goal_consistency", "constraint_check"):
        assert Decision.model_validate({"reply": "x", field: answer}).objection is None


def test_A5_false_is_a_no():
    assert Decision.model_validate({"reply": "x", "goal_consistency": False}).objection == "no"
    assert Decision.model_validate({"reply": "x", "constraint_check": ["no: it breaks", "two"]}).objection


UNKNOWN = [
    ("next_step", "finish", "done"),
    ("next_step", None, "done"),
    ("next_step", True, "done"),
    ("next_step", "Pending user", "pending_user"),
    ("next_step", "CONTINUE", "continue"),
    ("step", "IMPLEMENTATION", None),
    ("step", "execution", "EXECUTION"),
    ("step", "Awaiting approval", "AWAITING_APPROVAL"),
    ("step", 3, None),
    ("prompt_pattern", "base", None),
    ("prompt_pattern", "Base-Main", "base_main"),
    ("task_profile", "feature", None),
    ("task_profile", "Code analysis", "code_analysis"),
    ("task_profile", ["debugging"], None),
]


@every_row(("field", "said", "meant"), UNKNOWN)
def test_A6_an_unknown_word_counts_as_not_given_and_case_and_spacing_do_not_matter(field, said, meant):
    assert getattr(Decision.model_validate({"reply": "x", field: said}), field) == meant


def test_A1_an_unknown_next_step_goes_on_with_actions():
    said = {"next_step": "finish", "actions": [{"operation": "shell.run"}]}
    assert Decision.model_validate(said).next_step == "continue"


CONFIDENCE = [
    *(
        (said, 0.9)
        for said in (0.9, "0.9", "0,9", "90%", 90, "90", "high", "Very high", "high (0.7)", "~0.9", "高い")
    ),
    *(("medium", 0.6), ("low", 0.3), ("8/10", 0.8), ("9 of 10", 0.9), (1, 1), (0, 0), ("100 %", 1)),
    *(
        (said, None)
        for said in (None, "", "sure", 1.1, 2, -1, "-0.5", 101, "120%", True, [0.9], {"a": 1}, "1/0", "5x")
    ),
]


@every_row(("said", "meant"), CONFIDENCE)
def test_A6_confidence_is_a_number_in_any_form_or_missing(said, meant):
    assert Decision.model_validate({"reply": "x", "confidence": said}).confidence == meant


def test_values_are_frozen():
    with pytest.raises(ValidationError):
        Action(operation="a").operation = "b"
