"""SAFETY 14: a secret that comes in pieces does not leak, and events keep what can be put back."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.decision import Action, Decision
from duckflow.domain.events import ActionFinished, DecisionMade, Recorded, Reply
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ReplyVoid
from duckflow.domain.model import ChatMessage
from duckflow.safety.redaction.events import LiveRedaction, PieceRedaction, redact_event
from duckflow.safety.redaction.redactor import MARKER, Redactor
from fakes.rows import every_row
from fakes.secret_texts import BASE62, HARMLESS, SECRETS

TOKEN = "ghp_" + BASE62[:36]
PASSPHRASE = "four words and more"


def in_pieces(redactor: Redactor, text: str, size: int) -> str:
    pieces = PieceRedaction(redactor)
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
    pieces = PieceRedaction(Redactor())
    assert "".join(pieces.take("The duck swims on the po")) == "The duck swims on the "
    assert "".join(pieces.take("nd. こんにちは")) == "pond. こんにちは"


def recorded(event) -> Recorded:
    return Recorded(seq=1, at=datetime.now(UTC), event=event)


def test_what_was_held_back_is_shown_when_the_reply_is_complete_and_not_when_it_is_void():
    live = LiveRedaction(Redactor())
    assert list(live.take(ReplyPiece(text="It is here"))) == [ReplyPiece(text="It is ")]
    end = recorded(Reply(text="It is here"))
    assert list(live.take(end)) == [ReplyPiece(text="here"), end]
    list(live.take(ReplyPiece(text="half")))
    assert list(live.take(ReplyVoid())) == [ReplyVoid()]
    assert list(live.take(end)) == [end]


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
