"""G8: asked in any words, the model undoes exactly what `/undo` would, and shows the same list."""

from pathlib import Path

from duckflow.domain.events import ActionFinished, ApprovalRequested, Undone, VerifySet
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.wishes import asks_to_undo
from duckflow.loops.undo.operation import UNDO
from duckflow.ui.views.events import Describer
from duckflow.ui.views.undo import undo_text
from fakes.engine import action, decision, engine
from fakes.rows import every_row

FIRST = decision("", action("write_file", path="a.txt", content="one\n"), next_step="done")
SECOND = decision(
    "",
    action("write_file", path="a.txt", content="two\n"),
    action("write_file", path="b.txt", content="b\n"),
    next_step="done",
)


def undo(**args: object) -> dict[str, object]:
    return {"operation": UNDO, "args": args}


def files(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir() if one.is_file()}


async def changed(duck) -> None:
    for said in ("first", "second"):
        await duck.app.chat.say(said)
        while duck.state.approval:
            await duck.app.chat.answer(AnswerApproval(yes=True))


@every_row(
    ("said", "asks"),
    [
        ("undo that", True),
        ("Hmm, please undo what you just did.", True),
        ("revert your last change", True),
        ("undo that and use a dict instead", True),
        ("やっぱり戻して", True),
        ("さっきの変更を取り消してください", True),
        ("取り消して、辞書を使って", True),
        ("なかったことにして", True),
        ("don't undo that", False),
        ("how do I undo that?", False),
        ("what happens if I undo it", False),
        ("undo the commit in main.py", False),
        ("戻り値を変えて", False),
        ("値を戻して", False),
    ],
)
def test_G8_only_plain_words_count_as_the_wish_for_an_undo(said: str, asks: bool):
    assert asks_to_undo(said) is asks


async def test_G8_words_undo_the_last_request_exactly_and_it_can_be_redone(folder: Path):
    back = decision("It is as it was.", undo(), next_step="done")
    async with engine(folder, FIRST, SECOND, back, mode="ask", attended=True) as duck:
        await changed(duck)
        asked = len(duck.of(ApprovalRequested))
        assert await duck.app.chat.say("やっぱり戻して") == "done"
        assert files(folder) == {"a.txt": "one\n"}
        assert len(duck.of(ApprovalRequested)) == asked, "the user's words are the permission"
        (undone,) = duck.of(Undone)
        shown = next(one for one in map(Describer(), duck.events) if one and "↩" in one.text)
        assert shown.kind != "undo", "every window shows it"
        redone = await duck.app.undoing.redo()
        assert files(folder) == {"a.txt": "two\n", "b.txt": "b\n"}
        report = await duck.app.undoing.undo_request()
        assert shown.text == undo_text(report), "the list is that of /undo"
        assert (len(undone.takes_back), len(redone.restored)) == (2, 2)


async def test_G8_a_failing_test_does_not_bring_back_what_the_user_wanted_undone(folder: Path):
    back = decision("It is as it was.", undo(), next_step="done")
    async with engine(folder, FIRST, SECOND, back, attended=True) as duck:
        await changed(duck)
        duck.app.session.record(VerifySet(command="exit 1"))
        assert await duck.app.chat.say("undo that") == "done"
        assert files(folder) == {"a.txt": "one\n"}


async def test_G8_other_words_lead_to_a_question_that_shows_what_would_be_undone(folder: Path):
    back = decision("", undo(), next_step="done")
    async with engine(folder, FIRST, SECOND, back, mode="ask", attended=True) as duck:
        await changed(duck)
        assert await duck.app.chat.say("I liked it better an hour ago") == "awaiting_approval"
        asked = duck.state.approval
        assert asked is not None
        assert asked.kind is None
        assert "--- a/b.txt\n+++ /dev/null\n" in asked.difference
        assert "-two\n+one\n" in asked.difference
        assert files(folder)["a.txt"] == "two\n"
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert files(folder) == {"a.txt": "one\n"}


async def test_G8_J2_an_undo_with_another_wish_is_work_that_is_judged(folder: Path):
    mixed = decision("", undo(), action("write_file", path="c.txt", content="c\n"))
    async with engine(folder, FIRST, SECOND, mixed, decision("Done."), mode="edits") as duck:
        await changed(duck)
        await duck.app.chat.say("undo that and write c.txt instead")
        assert files(folder) == {"a.txt": "one\n", "c.txt": "c\n"}
        evaluated = duck.state.finished.objective.evaluation
        assert evaluated is not None
        assert evaluated.done
        result = next(one for one in duck.of(ActionFinished) if one.operation == UNDO)
        assert "b.txt (removed)" in result.text
        assert "-two\n+one\n" in result.text
        assert set(duck.state.finished.changed) == {"a.txt", "b.txt", "c.txt"}


async def test_G8_what_the_same_request_changed_is_no_work_any_more_once_it_is_undone(folder: Path):
    turn = decision("", action("write_file", path="a.txt", content="one\n"))
    async with engine(folder, turn, decision("", undo()), decision("Nothing is left.")) as duck:
        await duck.app.chat.say("try it, and undo it if it is no good")
        assert (files(folder), duck.state.finished.changed) == ({}, ())


async def test_G8_the_model_can_undo_the_last_change_alone_and_redo_it(folder: Path):
    turns = decision("", undo(last=1)), decision("", undo(redo=True)), decision("Both done.")
    async with engine(folder, FIRST, SECOND, *turns) as duck:
        await changed(duck)
        await duck.app.chat.say("look")
        assert [one.redo for one in duck.of(Undone)] == [False, True]
        assert files(folder) == {"a.txt": "two\n", "b.txt": "b\n"}


async def test_G8_where_nothing_is_left_to_undo_the_model_is_told_so(folder: Path):
    async with engine(folder, decision("", undo()), decision("There is nothing.")) as duck:
        await duck.app.chat.say("undo that")
        (result,) = duck.of(ActionFinished)
        assert (result.outcome, "nothing to undo" in result.text) == ("failed", True)


async def test_G8_changes_of_an_earlier_conversation_are_not_undone_unasked(folder: Path):
    async with engine(folder, FIRST) as duck:
        await duck.app.chat.say("first")
    tries = decision("", undo()), decision("I leave it."), decision("", undo(), next_step="done")
    async with engine(folder, *tries, mode="auto") as duck:
        await duck.app.chat.say("make it better")
        assert files(folder) == {"a.txt": "one\n"}, "unattended work does not take back earlier work"
        await duck.app.chat.say("undo the last change")
        assert files(folder) == {}


async def test_G8_a_small_model_need_not_choose_to_undo(folder: Path):
    async with engine(folder, FIRST, SECOND, mode="ask", attended=True) as duck:
        await changed(duck)
        session = duck.state.session_id
    async with engine(folder, session=session, small=True, mode="ask", attended=True) as duck:
        assert await duck.app.chat.say("undo that") == "done"
        assert files(folder) == {"a.txt": "one\n"}
        assert await duck.app.chat.say("さっきの変更を取り消して") == "done"
        assert files(folder) == {}
