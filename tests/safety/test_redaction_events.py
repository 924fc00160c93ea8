"""SAFETY 14: a secret that comes in pieces does not leak, and events keep what can be put back."""

import json
from base64 import b64encode, urlsafe_b64encode
from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Action, Decision
from duckflow.domain.events import (
    ActionFinished,
    DecisionMade,
    ErrorReported,
    Reply,
    RequestFinished,
    StoredEvent,
    UsageReported,
)
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown
from duckflow.domain.model import ChatMessage, ModelRequest, Thought, ToolCall, Usage
from duckflow.safety.redaction.events import LiveRedaction, PieceRedaction, clean_message, redact_event
from duckflow.safety.redaction.model import RedactedModel
from duckflow.safety.redaction.redactor import MARKER, Redactor
from fakes.model import FakeModel
from fakes.rows import every_row
from fakes.secret_texts import BASE62, HARMLESS, SECRETS

TOKEN = "ghp_" + BASE62[:36]
PASSPHRASE = "four words and more"


def in_pieces(redactor: Redactor, text: str, size: int) -> str:
    pieces = PieceRedaction(redactor, str)
    shown = [one for at in range(0, len(text), size) for one in pieces.take(text[at : at + size])]
    return "".join([*shown, *pieces.flush()])


@every_row("size", [1, 3, 7, 50])
@every_row("case", SECRETS, ids=lambda case: case.text[:40])
def test_a_secret_in_pieces_does_not_leak(case, size):
    redactor = Redactor()
    text = f"Here it is:\n{case.text}\nand more of it.\n"
    assert in_pieces(redactor, text, size) == redactor.clean(text)


@every_row("text", HARMLESS, ids=lambda text: text[:40])
def test_other_texts_come_through_whole(text):
    assert in_pieces(Redactor(), f"a\n{text}\nb", 5) == f"a\n{text}\nb"


@given(st.integers(1, 30))
def test_a_known_value_with_spaces_does_not_leak_in_pieces(size):
    shown = in_pieces(Redactor({PASSPHRASE: "k"}), f"it is {PASSPHRASE} or four words, you see", size)
    assert PASSPHRASE not in MARKER.sub("", shown)
    assert shown.endswith("or four words, you see")


def test_plain_prose_is_shown_as_it_comes():
    pieces = PieceRedaction(Redactor(), str)
    assert "".join(pieces.take("The duck swims on the po")) == "The duck swims on the "
    assert "".join(pieces.take("nd. こんにちは")) == "pond. こんにちは"


def recorded(event) -> StoredEvent:
    return StoredEvent(seq=1, at=datetime.now(UTC), event=event)


def test_what_was_held_back_is_shown_when_the_reply_is_complete_and_not_when_it_is_void():
    live = LiveRedaction(Redactor())
    assert list(live.take(ReplyPiece(text="It is here"))) == [ReplyPiece(text="It is ")]
    end = recorded(Reply(text="It is here"))
    assert list(live.take(end)) == [ReplyPiece(text="here"), end]
    list(live.take(ReplyPiece(text="half")))
    assert list(live.take(ReplyVoid())) == [ReplyVoid()]
    assert list(live.take(end)) == [end]


@every_row(
    "end",
    [
        recorded(RequestFinished(request_id="r", outcome="interrupted", exit_code=130)),
        recorded(ErrorReported(key="llm.cut_off")),
    ],
)
def test_what_was_held_back_of_a_cancelled_reply_does_not_begin_the_next_one(end):
    live = LiveRedaction(Redactor())
    list(live.take(ReplyPiece(text="It is here")))
    assert list(live.take(end)) == [ReplyPiece(text="here"), end]
    assert list(live.take(ReplyPiece(text="Next one"))) == [ReplyPiece(text="Next ")]


def test_output_of_a_command_is_held_back_by_itself():
    live = LiveRedaction(Redactor())
    assert list(live.take(OutputPiece(text=f"x {TOKEN[:9]}"))) == [OutputPiece(text="x ")]
    list(live.take(ReplyPiece(text="meanwhile ")))
    ended = recorded(
        ActionFinished(action_id="a", operation="shell.run", outcome="ok", text="", evidence_id="e1")
    )
    assert list(live.take(OutputPiece(text=TOKEN[9:]))) == []
    piece, last = live.take(ended)
    assert MARKER.fullmatch(piece.text)
    assert last is ended


def test_a_decision_is_kept_with_markers_and_its_actions_can_be_put_back():
    redactor = Redactor()
    action = Action(operation="file_ops.write_file", args={"path": "a", "content": f"k = '{TOKEN}'\n"})
    made = DecisionMade(
        loop=1,
        decision=Decision(next_step="continue", actions=(action,)),
        exchange=(ChatMessage(role="assistant", text=f'{{"content": "k = \'{TOKEN}\'\\n"}}'),),
    )
    kept = redact_event(redactor, made)
    assert TOKEN not in kept.model_dump_json()
    assert redactor.restore(kept.decision.actions[0]) == action


def test_K6_thinking_is_shown_without_secrets_wherever_its_pieces_are_cut():
    for cut in range(1, len(TOKEN)):
        live = LiveRedaction(Redactor())
        pieces = [f"the key is {TOKEN[:cut]}", f"{TOKEN[cut:]} and so", " on"]
        shown = [one for piece in pieces for one in live.take(ThinkingShown(text=piece))]
        shown += live.take(ReplyPiece(text="Done. "))
        assert shown[-1] == ReplyPiece(text="Done. ")
        thinking = "".join(one.text for one in shown if isinstance(one, ThinkingShown))
        assert MARKER.sub("KEY", thinking) == "the key is KEY and so on"


@every_row(
    "end",
    [
        ReplyVoid(),
        recorded(UsageReported(tier="fast", model="m", output="PlanDraft", tokens=Usage())),
        recorded(DecisionMade(loop=1, decision=Decision(next_step="done", reply="Yes."), exchange=())),
    ],
)
def test_K6_the_last_word_of_thinking_is_shown_when_the_thinking_is_over(end):
    live = LiveRedaction(Redactor())
    assert list(live.take(ThinkingShown(text="Look again"))) == [ThinkingShown(text="Look ")]
    assert list(live.take(end)) == [ThinkingShown(text="again"), end]


def thought(text: str, **data) -> Thought:
    return Thought(model="anthropic:claude", text=text, data=data)


def test_K6_a_thought_with_a_secret_is_dropped_since_a_signed_one_must_not_be_altered():
    fine = thought("Nothing to hide.", signature="EqQBCkYIBxgCKkA" * 200)
    readable, inside = thought(f"The key is {TOKEN}."), thought("", thinking=f"password = '{TOKEN}'")
    call = ToolCall(name="shell", arguments=json.dumps({"command": f"login {TOKEN}"}), id="c1")
    said = ChatMessage(role="assistant", text="Logging in.", calls=(call,), thoughts=(fine, readable, inside))
    made = DecisionMade(loop=1, decision=Decision(next_step="done", reply="Yes."), exchange=(said,))
    kept = redact_event(Redactor(), made)
    assert isinstance(kept, DecisionMade)
    assert kept.exchange[0].thoughts == (fine,)
    assert TOKEN not in kept.model_dump_json()


def test_K6_signatures_and_encrypted_thinking_are_no_secrets():
    chance = Random(7)
    for length in (40, 200, 1_000, 20_000):
        for encode in (b64encode, urlsafe_b64encode):
            made = thought("", signature=encode(chance.randbytes(length)).decode())
            message = ChatMessage(role="assistant", text="", thoughts=(made,))
            assert clean_message(message, Redactor().clean) == message
    unlucky = thought("", signature="A" * 200 + "-hf_" + BASE62[:34] + "-A" * 200)
    message = ChatMessage(role="assistant", text="", thoughts=(unlucky,))
    assert clean_message(message, Redactor().clean) == message


async def test_K6_calls_and_thoughts_in_a_prompt_leave_without_secrets():
    model = FakeModel("ok")
    call = ToolCall(name="shell", arguments=json.dumps({"command": f"login {TOKEN}"}), id="c1")
    said = ChatMessage(role="assistant", text="", calls=(call,), thoughts=(thought(TOKEN), thought("fine")))
    request = ModelRequest(output="Decision", messages=(said,))
    assert [piece async for piece in RedactedModel(model, Redactor()).stream(request)]
    assert TOKEN not in model.requests[0].model_dump_json()
    assert model.requests[0].messages[0].thoughts == (thought("fine"),)
