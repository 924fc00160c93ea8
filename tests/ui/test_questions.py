"""G1, SAFETY 8: a question shows all that a yes covers, and only a yes is one."""

import pytest

from duckflow.domain.approval import Approval, Kind
from duckflow.domain.commands import AnswerApproval
from duckflow.domain.consultation import Consultation
from duckflow.domain.decision import Action
from duckflow.i18n.catalogue import set_language
from duckflow.ui.views.questions import Questions
from fakes.keyboard import FakeWriter, Keyboard

LONG = "--- /dev/null\n+++ b/a\n@@ -0,0 +1,60 @@\n" + "".join(f"+line {number}\n" for number in range(60))


def approval(difference: str = "+neu\n", *, editable: bool = True, kind: Kind | None = None) -> Approval:
    return Approval(
        approval_id="p1",
        action=Action(operation="file_ops.write_file", args={"path": "a.txt", "content": "neu\n"}),
        intent="you asked for it",
        rationale="mode ask",
        difference=difference,
        digest="d",
        editable=editable,
        kind=kind,
    )


async def no_change(content: str, name: str) -> str | None:
    return None


def questions(keyboard: Keyboard, writer: FakeWriter, edit=no_change) -> Questions:
    return Questions(keyboard, writer, lambda: 24, edit)


@pytest.mark.parametrize(
    ("said", "yes", "reason"),
    [
        ("y", True, ""),
        ("1", True, ""),
        ("１", True, ""),
        ("はい", True, ""),
        ("n", False, ""),
        ("2", False, ""),
        ("n wrong file", False, "wrong file"),
        ("", False, ""),
        ("yesterday", False, "yesterday"),
    ],
)
async def test_only_a_yes_is_a_yes(said: str, yes: bool, reason: str):
    answer = await questions(Keyboard(said), FakeWriter()).approve(approval(editable=False))
    assert answer == AnswerApproval(yes=yes, reason=reason)


async def test_no_answer_is_none():
    """The end of input and Ctrl-C."""
    assert await questions(Keyboard(None), FakeWriter()).approve(approval()) is None


async def test_always_covers_a_kind_and_needs_one():
    keyboard = Keyboard("a")
    answer = await questions(keyboard, FakeWriter()).approve(approval(kind=Kind(what="edits", scope="src")))
    assert answer == AnswerApproval(yes=True, always=True)
    assert "a always" in keyboard.asked[0]


async def test_what_is_not_offered_is_asked_again():
    writer, keyboard = FakeWriter(), Keyboard("a", "3", "e: mine", "n")
    answer = await questions(keyboard, writer).approve(approval(editable=False))
    assert answer == AnswerApproval(yes=False)
    assert len(keyboard.asked) == 4
    assert "can't be answered here" in writer.text


async def test_what_was_edited_is_the_answer_and_no_change_asks_again():
    async def edit(content: str, name: str) -> str | None:
        assert (content, name) == ("neu\n", "a.txt")
        return "anders\n"

    assert await questions(Keyboard("e"), FakeWriter(), edit).approve(approval(), "neu\n") == AnswerApproval(
        yes=True, edited="anders\n"
    )
    keyboard = Keyboard("4", "n")
    assert await questions(keyboard, FakeWriter()).approve(approval(), "neu\n") == AnswerApproval(yes=False)
    assert len(keyboard.asked) == 2


async def test_a_yes_counts_only_once_all_was_shown():
    """What is longer than the screen comes page by page; nothing is hidden."""
    writer, keyboard = FakeWriter(), Keyboard("y", "", "all", "y")
    answer = await questions(keyboard, writer).approve(approval(LONG))
    assert answer == AnswerApproval(yes=True)
    assert all(f"line {number}" in writer.text for number in range(60))
    assert writer.text.count("line 59") == 1
    assert "45 more lines" in keyboard.asked[0]
    assert "Allow it?" in keyboard.asked[-1]


async def test_a_no_counts_at_once():
    answer = await questions(Keyboard("n too long"), FakeWriter()).approve(approval(LONG))
    assert answer == AnswerApproval(yes=False, reason="too long")


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_consultation_lists_its_ways_and_takes_a_number(language):
    set_language(language)
    asked = Consultation(
        consultation_id="c1",
        kind="stagnation",
        situation="consultation.stagnation",
        choices=("stop", "go_on"),
    )
    writer = FakeWriter()
    way = await questions(Keyboard("2 quickly"), writer).consult(asked)
    assert way is not None
    assert (way.choice, way.text) == ("go_on", "quickly")
    assert "  1. " in writer.text
    assert await questions(Keyboard("  "), FakeWriter()).consult(asked) is None
