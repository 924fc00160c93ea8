"""G8: every change by a file tool can be undone, without git, and never over someone else's work."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from duckflow.app.places import KEPT_FILES
from duckflow.config.places import state_dir
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.events import ActionFinished, ActionStarted, Undone
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.i18n.catalogue import set_language
from duckflow.store.kept_files import KeptFiles
from duckflow.ui.views.undo import undo_text, undone_text
from fakes.engine import action, decision, engine
from fakes.gate import Gate
from fakes.rows import every_row


def write(path: str, content: str) -> dict:
    return action("write_file", path=path, content=content)


def files(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


async def do(duck, *said: str) -> None:
    for text in said:
        await duck.app.chat.say(text)


async def test_G8_undo_takes_back_the_last_action_then_the_one_before(folder: Path):
    (folder / "a.txt").write_text("zero\n")
    rounds = decision("", write("a.txt", "one\n"), write("a.txt", "two\n"), write("b.txt", "new\n"))
    async with engine(folder, rounds, decision("Done.")) as duck:
        await do(duck, "go")
        report = await duck.app.undoing.undo()
        assert files(folder) == {"a.txt": "two\n"}
        assert [one.path for one in report.restored] == ["b.txt"]
        await duck.app.undoing.undo()
        assert files(folder) == {"a.txt": "one\n"}
        await duck.app.undoing.undo()
        assert files(folder) == {"a.txt": "zero\n"}
        nothing = await duck.app.undoing.undo()
        assert (nothing.restored, nothing.left) == ((), ())


async def test_G8_undo_of_a_request_takes_back_all_of_it_and_only_it(folder: Path):
    first = decision("", write("a.txt", "one\n"), next_step="done")
    second = decision(
        "",
        write("a.txt", "two\n"),
        write("deep/er/b.txt", "b\n"),
        write("a.txt", "three\n"),
        next_step="done",
    )
    async with engine(folder, first, second) as duck:
        await do(duck, "first", "second")
        report = await duck.app.undoing.undo_request()
        assert files(folder) == {"a.txt": "one\n"}
        assert not (folder / "deep").exists(), "folders that were made for a file go with it"
        assert (report.actions, report.remaining) == (3, 1)
        assert "/undo" in undo_text(report)
        assert (await duck.app.undoing.undo_request()).remaining == 0
        assert files(folder) == {}


async def test_G8_deleted_and_moved_files_come_back_with_their_mode_and_bytes(folder: Path):
    script = folder / "run.sh"
    script.write_bytes(b"\xef\xbb\xbf#!/bin/sh\r\necho hi")
    script.chmod(0o751)
    (folder / "gone.bin").write_bytes(bytes(range(256)))
    steps = decision(
        "", action("move_file", path="run.sh", to="bin/run"), action("delete_file", path="gone.bin")
    )
    async with engine(folder, steps, decision("Done.")) as duck:
        await do(duck, "go")
        while duck.state.approval:
            await duck.app.chat.answer(AnswerApproval(yes=True))
        assert sorted(files_of(folder)) == ["bin/run"]
        await duck.app.undoing.undo(2)
    assert sorted(files_of(folder)) == ["gone.bin", "run.sh"]
    assert script.read_bytes() == b"\xef\xbb\xbf#!/bin/sh\r\necho hi"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert (folder / "gone.bin").read_bytes() == bytes(range(256))


def files_of(folder: Path) -> list[str]:
    return [str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()]


async def test_G8_undo_works_after_a_restart(folder: Path):
    (folder / "a.txt").write_text("old\n")
    async with engine(folder, decision("", write("a.txt", "new\n"), next_step="done")) as duck:
        await do(duck, "go")
        session_id = duck.state.session_id
    async with engine(folder, session=session_id) as duck:
        await duck.app.undoing.undo_request()
        assert files(folder) == {"a.txt": "old\n"}
    async with engine(folder, session=session_id) as duck:
        assert (await duck.app.undoing.undo()).restored == (), "what was taken back stays so after a restart"
        await duck.app.undoing.redo()
        assert files(folder) == {"a.txt": "new\n"}


async def test_G8_an_undo_can_be_taken_back_and_done_again(folder: Path):
    step = decision("", write("a.txt", "one\n"), write("b.txt", "two\n"), next_step="done")
    async with engine(folder, step) as duck:
        await do(duck, "go")
        for _ in range(2):
            await duck.app.undoing.undo_request()
            assert files(folder) == {}
            report = await duck.app.undoing.redo()
            assert (report.kind, files(folder)) == ("redo", {"a.txt": "one\n", "b.txt": "two\n"})
        assert (await duck.app.undoing.redo()).restored == ()
        assert len(duck.of(Undone)) == 4


async def test_G8_redo_brings_back_files_with_the_folders_that_undo_removed(folder: Path):
    step = decision("", write("pkg/sub/a.txt", "one\n"), write("pkg/b.txt", "two\n"), next_step="done")
    async with engine(folder, step) as duck:
        await do(duck, "go")
        for _ in range(2):
            assert (await duck.app.undoing.undo_request()).left == ()
            assert not (folder / "pkg").exists(), "the folders were made for these files"
            assert (await duck.app.undoing.redo()).left == ()
            assert (folder / "pkg/sub/a.txt").read_text() == "one\n"
            assert (folder / "pkg/b.txt").read_text() == "two\n"


async def test_G8_what_someone_else_changed_is_named_and_left(folder: Path):
    step = decision("", write("a.txt", "mine\n"), write("b.txt", "mine\n"), next_step="done")
    async with engine(folder, step) as duck:
        await do(duck, "go")
        (folder / "a.txt").write_text("theirs\n")
        report = await duck.app.undoing.undo_request()
        assert [(one.path, one.reason) for one in report.left] == [("a.txt", "changed")]
        assert files(folder) == {"a.txt": "theirs\n"}
        assert "a.txt" in undo_text(report)


async def test_G8_a_change_by_someone_else_between_two_of_ours_survives(folder: Path):
    step = [decision("", write("a.txt", f"{text}\n"), next_step="done") for text in ("one", "two")]
    async with engine(folder, *step) as duck:
        await do(duck, "first")
        (folder / "a.txt").write_text("theirs\n")
        await do(duck, "second")
        report = await duck.app.undoing.undo(2)
        assert files(folder) == {"a.txt": "theirs\n"}
        assert [(one.path, one.reason) for one in report.left] == [("a.txt", "changed")]


async def test_G8_the_model_is_told_and_what_it_saw_is_stale(folder: Path):
    (folder / "a.txt").write_text("old\n")
    steps = decision("", write("a.txt", "new\n"), action("read_file", path="a.txt"), next_step="continue")
    async with engine(folder, steps, decision("Done.")) as duck:
        await do(duck, "go")
        await duck.app.undoing.undo()
        assert "took changes back" in duck.state.transcript[-1].text
        assert "a.txt" in duck.state.transcript[-1].text
        shown = [entry for entry in duck.state.transcript if entry.path == "a.txt" and entry.digest]
        assert shown
        assert all(entry.stale for entry in shown)


async def test_G8_the_difference_is_that_between_before_and_now(folder: Path):
    (folder / "a.txt").write_text("zero\n")
    steps = [
        decision("", write("a.txt", "one\n"), next_step="done"),
        decision("", write("a.txt", "two\n"), write("b.txt", "b\n"), next_step="done"),
    ]
    async with engine(folder, *steps) as duck:
        assert await duck.app.undoing.diff(session=True) == ""
        await do(duck, "first", "second")
        request = await duck.app.undoing.diff()
        assert "-one\n+two\n" in request
        assert "+++ b/b.txt" in request
        assert "-zero\n+two\n" in await duck.app.undoing.diff(session=True)
        await duck.app.undoing.undo_request()
        assert await duck.app.undoing.diff() == ""


async def test_G8_content_that_went_past_the_limit_is_said_to_be_gone(folder: Path, monkeypatch):
    monkeypatch.setattr("duckflow.app.resources.open_kept_files", small_store)
    (folder / "a.txt").write_bytes(os.urandom(40_000).hex().encode())
    (folder / "b.txt").write_bytes(os.urandom(40_000).hex().encode())
    steps = [decision("", write(name, "new\n"), next_step="done") for name in ("a.txt", "b.txt")]
    async with engine(folder, *steps) as duck:
        await do(duck, "first", "second")
        assert (await duck.app.undoing.undo_request()).restored, "the newest is kept"
        report = await duck.app.undoing.undo_request()
        assert [(one.path, one.reason) for one in report.left] == [("a.txt", "not_kept")]
        assert (folder / "a.txt").read_text() == "new\n"


def small_store(settings):
    return KeptFiles(state_dir() / KEPT_FILES, 60_000)


async def test_G8_nothing_is_changed_where_what_was_can_not_be_kept(folder: Path):
    (folder / "a.txt").write_text("old\n")
    step = decision("", write("a.txt", "new\n"), next_step="continue")
    async with engine(folder, step, decision("I see.")) as duck:

        def full(*_):
            raise UserError("store.disk_full", path="undo.db", reason="full")

        duck.app.kept.keep = full
        await do(duck, "go")
        (ended,) = duck.of(ActionFinished)
        assert ended.outcome == "failed"
        assert "nothing was changed" in ended.text
        assert ended.changes == ()
    assert files(folder) == {"a.txt": "old\n"}
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


async def test_undo_waits_for_nothing_that_runs(folder: Path):
    async with engine(folder, decision("", write("a.txt", "x\n"), next_step="done")) as duck:
        await do(duck, "go")
        running = Action(operation="shell.run", args={"command": "sleep 9"})
        duck.app.session.record(ActionStarted(action_id="a99", action=running, effect="execute"))
        with pytest.raises(UserError) as error:
            await duck.app.undoing.undo()
        assert error.value.key == "undo.busy"


async def test_an_undo_that_fails_half_way_can_be_tried_again(folder: Path):
    step = decision("", write("a.txt", "one\n"), write("b.txt", "two\n"), next_step="done")
    (folder / "a.txt").write_text("old a\n")
    (folder / "b.txt").write_text("old b\n")
    async with engine(folder, step) as duck:
        await do(duck, "go")
        paths = duck.app.workspace.paths
        real = paths.put

        def full(path, wanted, expected):
            if path == "a.txt":
                raise ToolError("a.txt: could not be written: the disk is full.")
            real(path, wanted, expected)

        paths.put = full
        report = await duck.app.undoing.undo_request()
        assert [(one.path, one.reason) for one in report.left] == [("a.txt", "failed")]
        assert files(folder) == {"a.txt": "one\n", "b.txt": "old b\n"}
        paths.put = real
        await duck.app.undoing.undo_request()
        assert files(folder) == {"a.txt": "old a\n", "b.txt": "old b\n"}


async def test_removed_files_are_told_from_changed_ones(folder: Path):
    (folder / "a.txt").write_text("a\n")
    steps = decision(
        "", write("b.txt", "b\n"), action("move_file", path="a.txt", to="c.txt"), next_step="pending_user"
    )
    async with engine(folder, steps) as duck:
        await do(duck, "go")
        made, moved = duck.of(ActionFinished)
        assert (made.changed, made.removed) == (("b.txt",), ())
        assert (set(moved.changed), moved.removed) == ({"a.txt", "c.txt"}, ("a.txt",))
        assert duck.state.request.removed == ("a.txt",)
        await duck.app.undoing.undo()
        assert (duck.state.request.changed, duck.state.request.removed) == (("b.txt",), ())


@every_row(("language", "word"), [("en", "restored a.txt"), ("ja", "元に戻しました: a.txt")])
async def test_M4_an_undo_is_told_in_both_languages(folder: Path, language: str, word: str):
    (folder / "a.txt").write_text("old\n")
    async with engine(folder, decision("", write("a.txt", "new\n"), next_step="done")) as duck:
        await do(duck, "go")
        set_language(language)
        assert word in undo_text(await duck.app.undoing.undo())
        assert undo_text(await duck.app.undoing.undo())
        assert undo_text(await duck.app.undoing.redo())


async def test_G8_a_new_session_takes_back_what_earlier_ones_in_this_folder_did(folder: Path):
    (folder / "a.txt").write_text("zero\n")
    async with engine(
        folder, decision("", write("a.txt", "one\n"), write("b.txt", "b\n"), next_step="done")
    ) as duck:
        await do(duck, "first session")
    async with engine(folder, decision("", write("a.txt", "two\n"), next_step="done")) as duck:
        await do(duck, "second session")
    async with engine(folder) as duck:
        assert "+two" in await duck.app.undoing.diff()
        assert [one.path for one in (await duck.app.undoing.undo()).restored] == ["a.txt"]
        assert files(folder) == {"a.txt": "one\n", "b.txt": "b\n"}
        await duck.app.undoing.redo()
        assert files(folder) == {"a.txt": "two\n", "b.txt": "b\n"}
        await duck.app.undoing.undo()
    async with engine(folder) as duck:
        assert {one.path for one in (await duck.app.undoing.undo_request()).restored} == {"a.txt", "b.txt"}
        assert files(folder) == {"a.txt": "zero\n"}
        assert not (await duck.app.undoing.undo()).restored, "nothing is taken back twice"


async def test_G8_an_undo_that_did_nothing_does_not_say_that_something_was_taken_back(folder: Path):
    async with engine(folder, decision("", write("a.txt", "one\n"), next_step="done")) as duck:
        await do(duck, "go")
        (folder / "a.txt").write_text("someone else's\n")
        told = undo_text(await duck.app.undoing.undo())
    assert told.startswith("↩ Nothing was undone:\n  left a.txt as it is: someone has changed it since.")


async def test_G8_caches_of_a_later_test_run_are_no_request_to_take_back_or_to_compare(folder: Path):
    (folder / "a.txt").write_text("zero\n")
    async with engine(folder, decision("", write("a.txt", "one\n"), next_step="done")) as duck:
        await do(duck, "go")
        await duck.app.dispatcher.run_typed("mkdir __pycache__ && echo x > __pycache__/a.pyc")
        shown = await duck.app.undoing.diff()
        assert "+one" in shown
        assert "__pycache__" not in shown
        report = await duck.app.undoing.undo_request()
        assert files(folder) == {"a.txt": "zero\n"}
        assert report.remaining == 0


async def test_G8_caches_that_a_request_deleted_come_back_and_nothing_of_the_request_before(folder: Path):
    run = {"operation": "shell.run", "args": {"command": "rm -r __pycache__"}}
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_text("x")
    answers = [decision("", write("a.txt", "one\n"), next_step="done"), decision("", run, next_step="done")]
    async with engine(folder, *answers, mode="auto") as duck:
        await do(duck, "go")
        await do(duck, "remove the caches")
        assert files(folder) == {"a.txt": "one\n"}
        report = await duck.app.undoing.undo_request()
        assert files(folder) == {"__pycache__/a.pyc": "x", "a.txt": "one\n"}
        assert report.remaining == 1


async def test_G8_C4_undo_says_if_a_request_was_stopped_in_between_and_how_to_keep_its_first_part(
    folder: Path, tmp_path: Path
):
    gate = Gate(tmp_path / "gate")
    first, second = (decision("", write("a.txt", text)) for text in ("one\n", "two\n"))
    async with engine(folder, first, gate.hold(decision("late")), second, decision("Done.")) as duck:
        work = asyncio.ensure_future(duck.app.chat.say("Count"))
        await gate.wait_until_asked()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await do(duck, "go on")
        report = await duck.app.undoing.undo_request()
        assert (files(folder), report.actions, report.after_stop) == ({}, 2, 1)
        assert "/undo redo, then /undo 1" in undo_text(report)
        assert undone_text(duck.of(Undone)[-1]) == undo_text(report), "a second window shows the same"
        await duck.app.undoing.redo()
        report = await duck.app.undoing.undo(report.after_stop)
        assert (files(folder), report.after_stop) == ({"a.txt": "one\n"}, 0)
