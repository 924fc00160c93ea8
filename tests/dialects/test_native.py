"""A large model speaks its provider's own protocol: calls, results under their ids, plain text (A8)."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from duckflow.dialects.native import MAX_REPAIRS, Native
from duckflow.dialects.native_tools import native_tools
from duckflow.dialects.prompt import PromptFrame
from duckflow.domain.decision import Decision
from duckflow.domain.errors import BadAnswer, ToolError
from duckflow.domain.live_updates import LiveUpdate, ReplyPiece, ReplyVoid
from duckflow.domain.model import (
    ChatMessage,
    ModelPiece,
    ModelTraits,
    StreamEnd,
    TextPiece,
    Thought,
    ToolCall,
    Usage,
)
from duckflow.domain.reduce.transcript import remember
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.loops.thinking.model import operations_of
from duckflow.services.evaluation import named_requirements
from fakes.model import FakeModel
from fakes.prompt_states import answered, asked, found, said
from fakes.rows import every_row
from fakes.tools import plain_catalogue

TRAITS = ModelTraits(name="large", window=128_000, native_tools=True)
CATALOGUE = plain_catalogue()
STATE = asked("Fix add in a.py")


def call(name: str, call_id: str = "c1", **args: Any) -> ToolCall:
    return ToolCall(name=name, arguments=json.dumps(args), id=call_id)


def turn(*pieces: str | ToolCall | Thought) -> Sequence[ModelPiece]:
    texts = [TextPiece(text=piece) if isinstance(piece, str) else piece for piece in pieces]
    return [*texts, StreamEnd(usage=Usage(input_tokens=3))]


def check(decision: Decision) -> Iterator[str]:
    for action in decision.actions:
        try:
            CATALOGUE.validate(action)
        except ToolError as error:
            yield str(error)


class Asked:
    """A native dialect over a model with scripted answers."""

    def __init__(self, *turns: Sequence[ModelPiece]) -> None:
        self.model = FakeModel(*turns, traits=TRAITS)
        self.dialect = Native(self.model, operations_of(CATALOGUE), PromptFrame(), check)
        self.shown: list[LiveUpdate] = []

    async def decide(self, state: AgentState = STATE):
        return await self.dialect.decide(state, self.shown.append)

    def sent(self, number: int = -1) -> list[ChatMessage]:
        return [message for message in self.model.requests[number].messages if message.role != "system"]


async def test_A8_calls_of_one_answer_are_actions_in_order_with_flat_arguments():
    edit = call("edit_file", "c2", path="a.py", old_string="a - b", new_string="a + b")
    duck = Asked(
        turn(
            "I look, then mend it.",
            call("read_file", "c1", path="a.py"),
            edit,
            call("shell", "c3", command="pytest"),
        )
    )
    decided = await duck.decide()
    assert [(one.operation, one.args, one.call_id) for one in decided.decision.actions] == [
        ("file_ops.read_file", {"path": "a.py"}, "c1"),
        ("file_ops.edit_file", {"path": "a.py", "edits": [{"find": "a - b", "replace": "a + b"}]}, "c2"),
        ("shell.run", {"command": "pytest"}, "c3"),
    ]
    assert (decided.decision.next_step, decided.decision.reply) == ("continue", "I look, then mend it.")
    assert [one.id for one in decided.exchange[0].calls] == ["c1", "c2", "c3"]


async def test_A8_text_without_calls_ends_the_turn():
    duck = Asked(turn("It is `{x}`, because {y}."))
    decided = await duck.decide()
    assert (decided.decision.next_step, decided.decision.reply) == ("done", "It is `{x}`, because {y}.")
    assert "".join(one.text for one in duck.shown if isinstance(one, ReplyPiece)) == decided.decision.reply


async def test_A8_the_prompt_of_the_protocol_speaks_of_no_json_and_no_blocks():
    duck = Asked(turn("Hello."))
    await duck.decide()
    (request,) = duck.model.requests
    text = "\n".join(message.text for message in request.messages).casefold()
    assert [word for word in ("json", "block", "output:", "file_ops", "next_step") if word in text] == []


def test_A8_a_plain_session_shows_at_most_6000_characters_of_tools():
    tools = native_tools(operations_of(CATALOGUE))
    assert sum(len(json.dumps({"type": "function", "function": one.model_dump()})) for one in tools) <= 6_000
    names = [tool.name for tool in tools]
    assert names[:4] == ["read_file", "write_file", "edit_file", "search"]
    assert {"search", "shell", "other", "note"} <= set(names)


async def test_A8_calls_and_results_are_replayed_exactly_and_matched_by_id():
    calls = (call("read_file", "x7", path="a.py"), call("shell", "x8", command="ls"))
    state = remember(
        STATE,
        TranscriptEntry(role="assistant", text="I look.", calls=calls),
        TranscriptEntry(role="user", text="The rules changed."),
        found(1, "a = 1", "a.py", result_of="x7"),
        found(2, "a.py", result_of="x8"),
    )
    duck = Asked(turn("So it is."))
    await duck.decide(state)
    sent = duck.sent()[1:]
    assert [(one.role, one.text, one.result_of) for one in sent[:4]] == [
        ("assistant", "I look.", ""),
        ("user", "[e1] ok\na = 1", "x7"),
        ("user", "[e2] ok\na.py", "x8"),
        ("user", "The rules changed.", ""),
    ]
    assert sent[0].calls == calls


@every_row(
    ("name", "words"),
    [("shell", "Not run."), ("note", "Noted."), ("ask_user", "The user's answer follows, if")],
)
async def test_A4_a_call_without_a_result_is_told_why(name: str, words: str):
    state = remember(STATE, TranscriptEntry(role="assistant", text="", calls=(call(name),)), said("Go on"))
    duck = Asked(turn("Yes."))
    await duck.decide(state)
    assert next(one for one in duck.sent() if one.result_of == "c1").text.startswith(words)


async def test_a_result_whose_call_was_left_out_is_told_as_plain_text():
    duck = Asked(turn("Yes."))
    await duck.decide(remember(STATE, answered("So."), found(1, "a", "a.py", result_of="gone")))
    assert all(not one.result_of for one in duck.sent())
    assert "[e1] ok\na" in [one.text for one in duck.sent()]


async def test_K6_thinking_is_handed_back_within_the_request_only():
    thought = Thought(model="large", text="Hm", data={"signature": "s"})
    earlier = TranscriptEntry(role="assistant", text="First.", thoughts=(thought,))
    now = TranscriptEntry(
        role="assistant", text="", calls=(call("read_file", path="a.py"),), thoughts=(thought,)
    )
    duck = Asked(turn(thought, "Done."))
    decided = await duck.decide(
        remember(STATE, earlier, said("And now?"), now, found(1, "a", result_of="c1"))
    )
    assert [one.thoughts for one in duck.sent() if one.role == "assistant"] == [(), (thought,)]
    assert decided.exchange[-1].thoughts == (thought,)


async def test_A8_a_note_sets_the_other_fields_of_a_decision():
    note = call(
        "note", "n", goal="g", constraints="one\ntwo", plan=["p"], confidence=0.6, doubt="it deletes data"
    )
    duck = Asked(turn(note, call("shell", command="ls")))
    decision = (await duck.decide()).decision
    assert decision.state_delta.goal == "g"
    assert (decision.state_delta.constraints, decision.state_delta.plan_brief) == (("one", "two"), ("p",))
    assert (decision.confidence, decision.objection) == (0.6, "no: it deletes data")
    assert [action.operation for action in decision.actions] == ["shell.run"]


async def test_A8_an_answer_of_notes_alone_is_answered_and_the_model_goes_on():
    duck = Asked(turn("My plan:", call("note", "n", goal="g")), turn(call("shell", "c2", command="ls")))
    decided = await duck.decide()
    assert decided.decision.state_delta.goal == "g"
    assert [(one.role, one.result_of) for one in decided.exchange] == [
        ("assistant", ""),
        ("user", "n"),
        ("assistant", ""),
    ]
    assert decided.calls[0].tokens.input_tokens == 6


async def test_A8_a_rare_operation_is_described_on_demand_and_run_with_its_arguments():
    duck = Asked(
        turn(call("other", "d", operation="plan_tool.propose")),
        turn(call("other", "r", operation="plan_tool.propose", args={"goal": "a game"})),
    )
    decided = await duck.decide()
    described = decided.exchange[1]
    assert (described.result_of, "plan_tool.propose(goal)" in described.text) == ("d", True)
    assert [(one.operation, one.args) for one in decided.decision.actions] == [
        ("plan_tool.propose", {"goal": "a game"})
    ]


async def test_A8_an_operation_that_needs_one_of_its_optional_arguments_is_described_on_demand_too():
    duck = Asked(turn(call("other", "d", operation="task_loop.run")), turn(call("shell", "r", command="ls")))
    decided = await duck.decide()
    assert "task_loop.run(" in decided.exchange[1].text


@every_row(
    "args",
    [{"goal": "g"}, {"args": {"goal": "g"}}, {"args": '{"goal": "g"}'}],
    ids=["flat", "object", "text"],
)
async def test_A6_the_arguments_of_a_rare_operation_are_understood_in_every_plain_form(args: dict[str, Any]):
    duck = Asked(turn(call("other", operation="plan_tool.propose", **args)))
    assert (await duck.decide()).decision.actions[0].args == {"goal": "g"}


async def test_A8_a_question_to_the_user_ends_the_turn():
    duck = Asked(turn("Two ways are open.", call("ask_user", question="Which one?")))
    decision = (await duck.decide()).decision
    assert (decision.next_step, decision.reply) == ("pending_user", "Two ways are open.\n\nWhich one?")


async def test_A6_all_faults_of_an_answer_are_told_at_once_under_their_calls():
    bad = turn(
        call("read_file", "c1", path="a.py"),
        call("read_file", "c2"),
        call("paint", "c3"),
        ToolCall(name="shell", arguments='{"command": NaN}', id="c4"),
    )
    duck = Asked(bad, turn("Sorry."))
    await duck.decide()
    told = {one.result_of: one.text for one in duck.sent() if one.result_of}
    assert "None of these calls ran" in told["c1"]
    assert "path" in told["c2"]
    assert "no operation paint" in told["c3"]
    assert "not a JSON value" in told["c4"]
    assert ReplyVoid() in duck.shown


async def test_A6_a_note_with_a_wrong_type_is_told_under_its_call():
    duck = Asked(
        turn(call("note", "c1", goal={"a": 1}), call("read_file", "c2", path="a.py")), turn("Sorry.")
    )
    await duck.decide()
    told = {one.result_of: one.text for one in duck.sent() if one.result_of}
    assert "goal" in told["c1"]
    assert "None of these calls ran" in told["c2"]


async def test_A6_the_same_fault_twice_ends_the_asking():
    duck = Asked(*[turn(call("paint"))] * 2)
    with pytest.raises(BadAnswer) as caught:
        await duck.decide()
    assert caught.value.usage == Usage(input_tokens=6)


async def test_A6_other_faults_are_told_up_to_three_times():
    duck = Asked(*[turn(call(f"paint{number}")) for number in range(9)])
    with pytest.raises(BadAnswer):
        await duck.decide()
    assert len(duck.model.requests) == 1 + MAX_REPAIRS


@every_row(
    ("text", "reply"),
    [
        ('{"next_step": "done", "reply": "Hi"}', "Hi"),
        ('```json\n{"reply": "Hi"}\n```', "Hi"),
        ('Here:\n{"rationale": "x", "next_step": "done", "reply": "Hi"}', "Hi"),
        ('The file holds {"reply": "Hi"}.', 'The file holds {"reply": "Hi"}.'),
        ("<think>Maybe {x}.</think>\nYes.", "Yes."),
    ],
)
async def test_A8_a_decision_as_json_text_is_accepted_all_the_same(text: str, reply: str):
    assert (await Asked(turn(text)).decide()).decision.reply == reply


async def test_A6_an_answer_that_begins_as_json_and_is_broken_is_no_reply():
    duck = Asked(turn('{"a": {"b": '), turn("Sorry."))
    assert (await duck.decide()).decision.reply == "Sorry."
    assert "That answer can't be used" in duck.sent()[-1].text


async def test_A8_calls_without_an_id_or_with_the_same_one_get_their_own():
    duck = Asked(
        turn(call("shell", "", command="a"), call("shell", "x", command="b"), call("shell", "x", command="c"))
    )
    decided = await duck.decide()
    ids = [one.call_id for one in decided.decision.actions]
    assert len(set(ids)) == 3
    assert all(ids)
    assert ids == [one.id for one in decided.exchange[0].calls]


async def test_A6_an_answer_cut_at_its_limit_runs_nothing():
    cut = [call("shell", command="ls"), StreamEnd(stop="length")]
    duck = Asked(cut, cut, cut, turn("Done."))
    assert (await duck.decide()).decision.actions == ()
    assert "cut at the limit" in duck.sent()[-1].text


async def test_A8_J1_requirements_come_with_the_first_calls_of_a_request():
    wanted = "1. a.py adds (3)\n- the tests pass\n\n400 digits (or 0) fail (priority 2)\n4. (2) no new file"
    note = call("note", "n1", requirements=wanted, profile="debugging", goal="mend add")
    duck = Asked(turn(call("read_file", path="a.py"), note))
    decided = await duck.decide()
    assert decided.requirements == (
        "1. a.py adds (3)",
        "- the tests pass",
        "400 digits (or 0) fail (priority 2)",
        "4. (2) no new file",
    )
    assert [(one.requirement, one.priority) for one in named_requirements(decided.requirements)] == [
        ("a.py adds", 3),
        ("the tests pass", 1),
        ("400 digits (or 0) fail", 2),
        ("no new file", 2),
    ]
    assert (decided.decision.task_profile, decided.decision.state_delta.goal) == ("debugging", "mend add")


async def test_A8_a_note_alone_is_answered_and_its_requirements_are_kept():
    duck = Asked(turn(call("note", "n1", requirements="a.py adds")), turn(call("read_file", path="a.py")))
    decided = await duck.decide()
    assert decided.requirements == ("a.py adds",)
    assert len(duck.model.requests) == 2


async def test_A8_finish_holds_the_reply_back_until_all_calls_have_succeeded():
    duck = Asked(
        turn("Last tests.", call("shell", command="pytest"), call("finish", "f1", reply="All green."))
    )
    decided = await duck.decide()
    assert (decided.decision.next_step, decided.decision.reply) == ("done", "Last tests.")
    assert decided.closing == "All green."
    assert [one.operation for one in decided.decision.actions] == ["shell.run"]


async def test_A8_finish_alone_is_the_reply():
    duck = Asked(turn(call("finish", reply="All green.")))
    decided = await duck.decide()
    assert (decided.decision.next_step, decided.decision.reply, decided.closing) == ("done", "All green.", "")


async def test_A8_empty_arguments_ask_for_the_description_and_cost_no_other_call():
    for empty in ({}, None, "{}"):
        describes = call("other", "d", operation="task_loop.run", args=empty)
        duck = Asked(turn(describes, call("shell", "r", command="ls")))
        decided = await duck.decide()
        assert [one.operation for one in decided.decision.actions] == ["shell.run"]
        assert "task_list" in decided.exchange[1].text
        assert len(duck.model.requests) == 1
