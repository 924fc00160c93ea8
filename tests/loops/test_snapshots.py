"""G8: a command's changes to files can be undone too, where copying the files first is cheap."""

from pathlib import Path

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, ActionStarted
from duckflow.domain.files.changes import FileChange
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.loops.undo.snapshots import Snapshots
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import ChangeOwner, KeptFiles
from duckflow.tools.searching.ripgrep import find_ripgrep
from duckflow.ui.views.undo import undo_text
from fakes.engine import decision, engine

MARK = ChangeOwner("s", "r1", "a1")


@pytest.fixture
def kept(tmp_path: Path):
    made = KeptFiles(tmp_path / "undo.db", 10_000_000)
    yield made
    made.close()


@pytest.fixture(params=["ripgrep", "walk"])
def snapshots(request, folder: Path, kept: KeptFiles):
    ripgrep = find_ripgrep(folder) if request.param == "ripgrep" else None
    workspace = Workspace(folder)
    yield Snapshots(workspace, kept, ripgrep, 50, 100_000)
    workspace.close()


async def changed_by(snapshots: Snapshots, command) -> dict[str, FileChange]:
    access = Access(snapshots._workspace, snapshots._kept, MARK)
    async with snapshots.around(access):
        command()
    return {change.path: change for change in access.changes}


async def test_changed_new_and_deleted_files_are_seen(folder: Path, snapshots: Snapshots, kept: KeptFiles):
    for name in ("same", "changed", "deleted", "moded"):
        (folder / name).write_text(name)

    def command():
        (folder / "changed").write_text("other")
        (folder / "deleted").unlink()
        (folder / "moded").chmod(0o700)
        (folder / "new").write_text("new")

    found = await changed_by(snapshots, command)
    assert set(found) == {"changed", "deleted", "moded", "new"}
    assert found["new"].before is None
    assert found["deleted"].after is None
    assert (found["moded"].mode_before, found["moded"].mode_after) == (0o644, 0o700)
    assert kept.content(found["changed"].before) == b"changed"
    assert {change.path for change in kept.changes("s", "a1")} == set(found)


async def test_a_file_written_twice_within_a_moment_is_seen_both_times(folder: Path, snapshots: Snapshots):
    (folder / "a").write_text("0")
    for number in range(1, 30):
        found = await changed_by(snapshots, lambda number=number: (folder / "a").write_text(str(number % 10)))
        assert set(found) == {"a"}


async def test_too_many_or_too_large_is_not_copied(folder: Path, snapshots: Snapshots):
    (folder / "a").write_text("a")
    (folder / "large").write_text("x" * 200_000)
    assert set(await changed_by(snapshots, (folder / "a").unlink)) == {"a"}
    for number in range(60):
        (folder / f"file{number}").write_text("x")
    assert await changed_by(snapshots, (folder / "file1").unlink) == {}


async def test_secrets_and_version_control_are_not_copied(
    folder: Path, snapshots: Snapshots, kept: KeptFiles
):
    (folder / ".git").mkdir()
    (folder / ".git/index").write_text("x")
    (folder / ".env").write_text("KEY=1")
    (folder / "a").write_text("a")
    await changed_by(snapshots, lambda: (folder / ".env").write_text("KEY=2"))
    assert set(kept.snapshot("s")) == {"a"}


async def test_a_file_that_was_only_ignored_before_does_not_count_as_new(folder: Path, kept: KeptFiles):
    workspace = Workspace(folder)
    snapshots = Snapshots(workspace, kept, find_ripgrep(folder), 5_000, 32_000_000)
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "precious.log").write_text("years of work")
    found = await changed_by(snapshots, lambda: (folder / ".gitignore").write_text(""))
    assert set(found) == {".gitignore"}
    workspace.close()


async def test_what_is_kept_for_commands_goes_when_the_session_closes(
    folder: Path, snapshots: Snapshots, kept: KeptFiles
):
    (folder / "a").write_text("a")
    await changed_by(snapshots, lambda: None)
    assert kept.snapshot("s")
    snapshots.close()
    assert kept.snapshot("s") == {}


async def test_G8_an_undo_covers_what_a_command_did_and_names_the_command(folder: Path):
    (folder / "a.txt").write_text("old\n")
    async with engine(folder) as duck:
        session, app = duck.app.session, duck.app
        command = Action(operation="shell.run", args={"command": "make   all"})
        session.record(ActionStarted(action_id="a1", action=command, effect="execute"))
        access = Access(app.workspace, app.kept, ChangeOwner(duck.state.session_id, "", "a1"))
        async with app.dispatcher._runner._snapshots.around(access):
            (folder / "a.txt").write_text("built\n")
            (folder / "out.txt").write_text("built\n")
        session.record(
            ActionFinished(
                action_id="a1",
                operation="shell.run",
                outcome="ok",
                text="",
                evidence_id="e1",
                changes=access.changes,
            )
        )
        report = await app.undoing.undo()
        assert {"a.txt", "out.txt"} <= {one.path for one in report.restored}
        assert report.commands == ("make   all",)
        assert "$ make all" in undo_text(report)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.txt": "old\n"}


async def test_G8_a_command_nobody_could_watch_is_named_as_not_covered(folder: Path):
    async with engine(folder) as duck:
        command = Action(operation="shell.run", args={"command": "rm -r build"})
        duck.app.session.record(ActionStarted(action_id="a1", action=command, effect="execute"))
        duck.app.session.record(
            ActionFinished(action_id="a1", operation="shell.run", outcome="ok", text="", evidence_id="e1")
        )
        report = await duck.app.undoing.undo()
        assert report.restored == ()
        assert "$ rm -r build" in undo_text(report)


async def test_G8_a_real_command_is_taken_back_with_what_it_did_to_files(folder: Path):
    (folder / "a.txt").write_text("old\n")
    command = {"operation": "shell.run", "args": {"command": "echo built > a.txt; echo x > out.txt"}}
    async with engine(folder, decision("", command, next_step="pending_user"), mode="auto") as duck:
        await duck.app.chat.say("go")
        while duck.state.approval:
            await duck.app.chat.answer(AnswerApproval(yes=True))
        assert (folder / "a.txt").read_text() == "built\n"
        report = await duck.app.undoing.undo_request()
        assert {"a.txt", "out.txt"} <= {one.path for one in report.restored}
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a.txt": "old\n"}
