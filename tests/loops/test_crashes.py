"""C5: after a crash the next start names finished, unfinished and unknown actions, and continues."""

import os
from pathlib import Path

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, ActionStarted, Recovered, UserMessage
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.i18n.catalogue import set_language
from duckflow.safety.files import atomic, replacing
from duckflow.ui.views.undo import recovered_text
from fakes.engine import action, decision, engine
from fakes.rows import every_row


class Killed(BaseException):
    """Stands for a kill: no later code runs."""


def write(path: str, content: str) -> dict:
    return action("write_file", path=path, content=content)


async def crash(folder: Path, monkeypatch, at: str, *actions: dict) -> str:
    """Work until a kill before or after `b.txt` is replaced or moved aside; return the session's id."""
    exchange, rename = replacing.rename_at, os.rename

    def killed(real, touches_b: bool, *args, **kwargs):
        if touches_b and at == "before":
            raise Killed
        real(*args, **kwargs)
        if touches_b:
            raise Killed

    monkeypatch.setattr(
        replacing, "rename_at", lambda old, new, how: killed(exchange, new[1] == "b.txt", old, new, how)
    )
    monkeypatch.setattr(os, "rename", lambda old, new, **how: killed(rename, old == "b.txt", old, new, **how))
    async with engine(folder, decision("", *actions)) as duck:
        with pytest.raises(Killed):
            await say_and_permit(duck)
    monkeypatch.undo()
    return duck.state.session_id


async def say_and_permit(duck) -> None:
    await duck.app.chat.say("go")
    while duck.state.approval:
        await duck.app.chat.answer(AnswerApproval(yes=True))


def put(folder: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(f"old {name}\n")


WRITES = tuple(write(name, f"new {name}\n") for name in ("a.txt", "b.txt", "c.txt"))


@pytest.mark.parametrize(
    ("at", "outcome", "content"), [("before", "failed", "old b.txt\n"), ("after", "ok", "new b.txt\n")]
)
async def test_C5_the_disk_says_whether_a_write_was_made(folder: Path, own_home, at, outcome, content):
    put(folder)
    with pytest.MonkeyPatch.context() as patch:
        session_id = await crash(folder, patch, at, *WRITES)
    assert (folder / "b.txt").read_text() == content
    async with engine(folder, decision("I see."), session=session_id) as duck:
        (found,) = duck.of(Recovered)
        (ended,) = duck.of(ActionFinished)
        assert ended.outcome == outcome
        assert ended.not_run == ("file_ops.write_file",)
        done = ("file_ops.write_file a.txt", *(["file_ops.write_file b.txt"] if outcome == "ok" else []))
        assert found.finished == done
        assert found.not_done == (() if outcome == "ok" else ("file_ops.write_file b.txt",))
        assert found.not_run == ("file_ops.write_file c.txt",)
        assert found.unknown == ()
        assert (folder / "c.txt").read_text() == "old c.txt\n", "nothing is run by itself"
        assert "has been started again" in duck.state.transcript[-1].text
        await duck.app.undoing.undo_request()
        assert (folder / "a.txt").read_text() == "old a.txt\n"
        assert (folder / "b.txt").read_text() == "old b.txt\n", "what was found done can be taken back"
        assert [one.name for one in folder.iterdir() if one.name.startswith(".")] == []


async def test_C5_a_file_that_is_neither_old_nor_new_is_unknown(folder: Path):
    put(folder)
    with pytest.MonkeyPatch.context() as patch:
        session_id = await crash(folder, patch, "before", *WRITES)
    (folder / "b.txt").write_text("someone else's\n")
    async with engine(folder, decision("I look."), session=session_id) as duck:
        (found,) = duck.of(Recovered)
        assert found.unknown == ("file_ops.write_file b.txt",)
        assert duck.of(ActionFinished)[0].outcome == "unknown"
        assert await duck.app.chat.say("go on") == "done"


@every_row("at", ["before", "after"])
async def test_C5_the_disk_says_whether_a_file_was_deleted(folder: Path, at: str):
    put(folder)
    with pytest.MonkeyPatch.context() as patch:
        session_id = await crash(folder, patch, at, action("delete_file", path="b.txt"))
    async with engine(folder, decision("I see."), session=session_id) as duck:
        (found,) = duck.of(Recovered)
        assert (found.finished if at == "after" else found.not_done) == ("file_ops.delete_file b.txt",)
        assert (folder / "b.txt").exists() == (at == "before")


async def test_C5_a_command_is_unknown_and_never_run_again(folder: Path):
    async with engine(folder, decision("never said")) as duck:
        session_id = duck.state.session_id
        command = Action(operation="shell.run", args={"command": "touch ran.txt"})
        duck.app.session.record(
            UserMessage(request_id="r_1", text="go"),
            ActionStarted(action_id="a1", action=command, effect="execute"),
        )
    asks = decision("Shall I run it again?", next_step="pending_user")
    async with engine(folder, asks, session=session_id) as duck:
        (found,) = duck.of(Recovered)
        assert found.unknown == ("shell.run touch ran.txt",)
        assert await duck.app.chat.go_on() == "pending_user"
    assert not (folder / "ran.txt").exists()


async def test_C5_a_crash_is_told_once(folder: Path):
    put(folder)
    with pytest.MonkeyPatch.context() as patch:
        session_id = await crash(folder, patch, "before", *WRITES)
    for count in (1, 0, 0):
        async with engine(folder, session=session_id) as duck:
            assert len(duck.of(Recovered)) == count


async def test_an_orderly_end_is_no_crash(folder: Path):
    async with engine(
        folder, decision("", write("a.txt", "x\n")), decision("Which?", next_step="pending_user")
    ) as duck:
        await duck.app.chat.say("go")
        session_id = duck.state.session_id
    async with engine(folder, session=session_id) as duck:
        assert duck.of(Recovered) == []


async def test_C5_an_open_question_stays_open_when_the_program_is_killed_right_after_it(folder: Path):
    async with engine(folder, decision("", write("a.txt", "x\n")), mode="ask") as duck:
        session, session_id = duck.app.session, duck.state.session_id
        real = session.record

        def dies_before_the_end(*events):
            if any(event.type == "request_finished" for event in events):
                raise Killed
            real(*events)

        session.record = dies_before_the_end
        with pytest.raises(Killed):
            await duck.app.chat.say("go")
    async with engine(folder, decision("Done."), mode="ask", session=session_id) as duck:
        assert duck.state.approval is not None
        await duck.app.chat.answer(AnswerApproval(yes=True))
    assert (folder / "a.txt").read_text() == "x\n"


async def test_C5_without_what_was_written_down_nothing_is_claimed(folder: Path, own_home: Path):
    put(folder)
    with pytest.MonkeyPatch.context() as patch:
        session_id = await crash(folder, patch, "after", *WRITES)
    (kept,) = own_home.rglob("undo.db")
    kept.write_bytes(b"broken" * 10_000)
    for log in own_home.rglob("undo.db-*"):
        log.unlink()
    async with engine(folder, session=session_id) as duck:
        (found,) = duck.of(Recovered)
        assert found.unknown == ("file_ops.write_file b.txt",)


def test_the_place_where_a_kill_is_made_up_is_the_place_where_files_change():
    assert atomic.os is os


@every_row(("language", "word"), [("en", "Unknown, please check"), ("ja", "不明")])
def test_M4_what_was_found_is_told_in_both_languages(language: str, word: str):
    set_language(language)
    found = Recovered(finished=("a",), not_done=("b",), unknown=("c",), not_run=("d",))
    assert word in recovered_text(found)
    assert recovered_text(Recovered())
    actions = Recovered(finished=("file_ops.edit_file a.py",), unknown=("shell.run make",))
    shown = recovered_text(actions)
    assert {"en": "edited a.py", "ja": "a.py を編集しました"}[language] in shown
    assert "    $ make" in shown
    assert "file_ops" not in shown
