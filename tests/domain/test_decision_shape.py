"""The shape of a Decision: what it needs, what it fills in, what it refuses (SPEC A1, A2, A5, E2, N)."""

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
def test_A1_next_step_and_a_reply_or_an_action_are_enough(said):
    decision = Decision.model_validate({"next_step": "done", **said})
    assert (decision.step, decision.task_profile, decision.confidence, decision.prompt_pattern) == (None,) * 4
    assert decision.state_delta == StateDelta()
    assert decision.objection is None


@every_row(
    "wrong",
    [
        {"reply": "Hi"},
        {"next_step": "done"},
        {"next_step": "done", "reply": " \n"},
        {"next_step": "stop", "reply": "Hi"},
        {"next_step": "done", "reply": "Hi", "step": "execution"},
        {"next_step": "done", "reply": "Hi", "confidence": 1.1},
        {"next_step": "done", "reply": "Hi", "task_profile": "unknown"},
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


@every_row(
    "answer",
    ["yes", "Yes: it is", " YES.", "yes, it fits", "はい", "はい、合っています", "はい：問題なし", "ええ。"],
)
def test_A5_only_what_clearly_begins_with_yes_is_a_yes(answer):
    said = Decision(next_step="done", reply="x", goal_consistency=answer, constraint_check=answer)
    assert said.objection is None


NO = ["no", "No: it breaks it", " NO", "not really", "", "maybe", "yesterday", "yes and no", "yes/no", "n/a"]


@every_row("answer", [*NO, "いいえ", "はいいろ", "たぶん", "I think yes"])
def test_A5_a_no_to_goal_or_constraints_is_an_objection(answer):
    assert Decision(next_step="done", reply="x", goal_consistency=answer).objection == answer
    assert Decision(next_step="done", reply="x", constraint_check=answer).objection == answer


def test_values_are_frozen():
    with pytest.raises(ValidationError):
        Action(operation="a").operation = "b"
