"""G1, SAFETY 8: a question shows all that a yes covers, and only a yes is one."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalRequested,
    RequestFinished,
    StoredEvent,
)
from duckflow.domain.extensions import Extensions
from duckflow.domain.lines import TextLine
from duckflow.domain.questions.approval import AnswerApproval, Approval, ApprovalScope
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import set_language
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.output.text_width import width_of
from duckflow.ui.questions import Questions
from duckflow.ui.screen import Screen
from duckflow.ui.views.events import Describer
from fakes.keyboard import FakeWriter, Keyboard

LONG = "--- /dev/null\n+++ b/a\n@@ -0,0 +1,60 @@\n" + "".join(f"+line {number}\n" for number in range(60))


def approval(
    difference: str = "+neu\n", *, editable: bool = True, kind: ApprovalScope | None = None
) -> Approval:
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
    engine = SimpleNamespace(state=AgentState(), extensions=Extensions(), servers=tuple)
    context = CommandContext(engine, writer, Screen(writer), lambda session: None)  # type: ignore[arg-type]
    return Questions(context, keyboard, SimpleNamespace(edit=edit))  # type: ignore[arg-type]


def test_M3_a_run_that_stops_at_a_question_names_only_the_answers_that_can_be_given():
    ended = RequestFinished(request_id="r", outcome="awaiting_approval", exit_code=3)
    for asked, ways in (
        (approval(editable=False), "yes (or no with a reason)"),
        (
            approval(kind=ApprovalScope(what="command", scope="ls")),
            "yes (or always, edit:…, no with a reason)",
        ),
    ):
        describe = Describer("abc")
        describe(ApprovalRequested(approval=asked))
        told = describe(ended)
        assert told is not None
        assert told.text.endswith(f"--resume abc --answer {ways}")


async def test_B6_a_yes_is_a_yes_a_no_a_no_and_what_is_unclear_is_asked_again_in_one_line():
    writer, keyboard = FakeWriter(), Keyboard("", "yesterday", "5", "はい、お願いします")
    answer = await questions(keyboard, writer).approve(approval(editable=False))
    assert answer == AnswerApproval(yes=True)
    assert len(keyboard.asked) == 4
    assert writer.text.count("Please answer yes or no") == 3
    refused = await questions(Keyboard("n wrong file"), FakeWriter()).approve(approval())
    assert refused == AnswerApproval(yes=False, reason="wrong file")


async def test_a_slash_command_at_a_question_does_what_it_does_and_the_question_stays():
    writer, keyboard = FakeWriter(), Keyboard("/mode", "／ヘルプ", "/nonsense", "y")
    answer = await questions(keyboard, writer).approve(approval())
    assert answer == AnswerApproval(yes=True)
    assert "Mode ask: asks before every change" in writer.text
    assert "/undo 取り消し" in writer.text
    assert "There is no command /nonsense" in writer.text
    assert len(set(keyboard.asked)) == 1
    writer, keyboard = FakeWriter(), Keyboard("ls", "clear", "y")
    assert await questions(keyboard, writer).approve(approval()) == AnswerApproval(yes=True)
    assert "type !ls" in writer.text
    keyboard = Keyboard("/mode", "2")
    assert await questions(keyboard, FakeWriter()).consult(CONSULTATION) == ChooseWay(choice="go_on")


async def test_G1_a_remark_is_handed_on_and_the_change_is_not_shown_a_second_time():
    writer = FakeWriter()
    asking = questions(Keyboard("why this file?", "テストは何を確かめますか", "y"), writer)
    assert await asking.approve(approval()) == "why this file?"
    assert await asking.approve(approval()) == "テストは何を確かめますか"
    assert await asking.approve(approval()) == AnswerApproval(yes=True)
    assert writer.text.count("+neu") == 1
    assert writer.text.count("Write a.txt?") == 3


async def test_G1_a_question_mark_opens_the_five_points():
    writer = FakeWriter()
    asked = approval().model_copy(
        update={
            "risk": "low",
            "impact": (TextLine(key="approval.impact.undo"),),
            "alternatives": (TextLine(key="approval.instead.refuse"),),
        }
    )
    before = questions(Keyboard("y"), writer)
    await before.approve(asked)
    assert writer.text.split("\n") == [
        "",
        "🦆 Write a.txt?",
        "  low risk · /undo reverts it",
        "  Why: you asked for it",
        "",
        "+neu",
    ]
    writer = FakeWriter()
    await questions(Keyboard("？", "y"), writer).approve(asked)
    for point in ("low risk", "can be undone with /undo", "Instead, you can:", "I'm asking because"):
        assert point in writer.text


async def test_G1_a_single_very_long_line_is_paged_by_screen_lines():
    writer, keyboard = FakeWriter(), Keyboard("y", "all", "y")
    answer = await questions(keyboard, writer).approve(approval("+" + "x" * 8_000 + "END\n"))
    assert answer == AnswerApproval(yes=True)
    assert "more lines" in keyboard.asked[0]
    assert "END" not in "".join(writer.texts[:18])
    assert "END" in writer.text
    assert all(width_of(row) <= 80 for row in writer.text.split("\n"))


async def test_G1_a_question_longer_than_the_screen_says_on_each_page_and_at_its_end_what_is_asked():
    files = TextLine(key="approval.impact.files_created", values={"count": 1, "paths": "a.txt"})
    asked = approval(LONG).model_copy(update={"impact": (files,)})
    for columns in (80, 200):
        writer, keyboard = FakeWriter(columns=columns), Keyboard(*[""] * 3, "y")
        assert await questions(keyboard, writer).approve(asked) == AnswerApproval(yes=True)
        pages = len(keyboard.asked)
        assert writer.text.count("🦆 Write a.txt?") == pages, "once on each page, and again at the end"
        *_, question, created, facts = writer.text.rstrip("\n").split("\n")
        assert (question, created) == ("🦆 Write a.txt?", "  new files: 1 (a.txt)")
        assert "risk" in facts
        assert all(f"line {number}" in writer.text for number in range(60)), "nothing is left out"
    for answers in (("all", "y"), ("y", "y")):
        writer = FakeWriter()
        assert await questions(Keyboard(*answers), writer).approve(asked) == AnswerApproval(yes=True)
        assert writer.text.rstrip("\n").split("\n")[-3] == "🦆 Write a.txt?"
    writer = FakeWriter()
    await questions(Keyboard("y"), writer).approve(approval())
    assert writer.text.count("🦆 Write a.txt?") == 1, "a question that fits is not repeated"


async def test_G1_a_very_long_command_above_a_difference_is_paged_on_a_wide_screen_too():
    writer, keyboard = FakeWriter(columns=200), Keyboard("y", "y")
    long = "$ " + "x" * 9_000 + "END\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
    assert await questions(keyboard, writer).approve(approval(long)) == AnswerApproval(yes=True)
    assert "more lines" in keyboard.asked[0]
    assert all(width_of(row) <= 200 for row in writer.text.split("\n"))


async def test_no_answer_is_none():
    """The end of input and Ctrl-C."""
    assert await questions(Keyboard(None), FakeWriter()).approve(approval()) is None


async def test_always_covers_a_kind_and_needs_one():
    keyboard = Keyboard("a")
    answer = await questions(keyboard, FakeWriter()).approve(
        approval(kind=ApprovalScope(what="edits", scope="src"))
    )
    assert answer == AnswerApproval(yes=True, always=True)
    assert "a always" in keyboard.asked[0]


async def test_what_is_not_offered_is_asked_again():
    writer, keyboard = FakeWriter(), Keyboard("a", "3", "e: mine", "n")
    answer = await questions(keyboard, writer).approve(approval(editable=False))
    assert answer == AnswerApproval(yes=False)
    assert len(keyboard.asked) == 4
    assert "In another mode I ask less" in writer.text
    assert "not available here" in writer.text


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
    """Long questions come page by page; nothing is hidden."""
    writer, keyboard = FakeWriter(), Keyboard("y", "", "all", "y")
    answer = await questions(keyboard, writer).approve(approval(LONG))
    assert answer == AnswerApproval(yes=True)
    assert all(f"line {number}" in writer.text for number in range(60))
    assert writer.text.count("line 59") == 1
    assert "52 more lines" in keyboard.asked[0]
    assert "Allow it?" in keyboard.asked[-1]


async def test_a_no_counts_at_once():
    answer = await questions(Keyboard("n too long"), FakeWriter()).approve(approval(LONG))
    assert answer == AnswerApproval(yes=False, reason="too long")


CONSULTATION = Consultation(
    consultation_id="c1",
    kind="stagnation",
    situation="consultation.stagnation",
    choices=("stop", "go_on"),
)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_I6_a_consultation_takes_a_number_and_asks_again_for_anything_that_is_no_choice(language):
    set_language(language)
    writer, keyboard = FakeWriter(), Keyboard("", "3", "９", "2 quickly")
    way = await questions(keyboard, writer).consult(CONSULTATION)
    assert way == ChooseWay(choice="go_on", text="quickly")
    assert "  1. " in writer.text
    assert len(keyboard.asked) == 4
    assert await questions(Keyboard(None), FakeWriter()).consult(CONSULTATION) is None


async def test_G1_a_command_that_stands_above_the_question_is_not_repeated_in_it():
    """A long one is cut there, so the question shows all of it."""
    for command in ("make docs", f"echo {'x' * 120}"):
        writer = FakeWriter()
        asker = questions(Keyboard("y"), writer)
        run = Action(operation="shell.run", args={"command": command})
        ended = {
            "action_id": "a",
            "operation": "shell.run",
            "outcome": "ok",
            "evidence_id": "e1",
            "exit_code": 0,
        }
        for event in (
            ActionStarted(action_id="a", action=run, effect="execute"),
            ActionFinished.model_validate({**ended, "text": "exit code 0", "exit_code": 0}),
        ):
            asker._context.screen(StoredEvent(seq=1, at=datetime.now(UTC), event=event))
        action = Action(operation="shell.take_over", args={"command": command})
        asked = approval(f"$ {command}\n+neu\n").model_copy(update={"action": action})
        assert await asker.approve(asked) == AnswerApproval(yes=True)
        assert writer.text.replace("\n", "").count(command) == 1
        assert "+neu" in writer.text
