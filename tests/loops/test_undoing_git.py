"""G8: undo takes back what commands did with git, and never breaks what was built on it."""

from pathlib import Path
from typing import Any

from duckflow.domain.questions.approval import AnswerApproval
from duckflow.i18n.catalogue import set_language
from duckflow.ui.transcript import last_exchange
from duckflow.ui.views.undo import undo_text
from fakes.engine import decision, engine
from fakes.repository import git, make_repository

WHO = "git config user.name A; git config user.email a@example.com; "


def run(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


def prepared(folder: Path) -> Path:
    make_repository(folder)
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.com")
    return folder


def history(folder: Path) -> tuple[str, ...]:
    return tuple(git(folder, "log", "--format=%s").split("\n"))


async def after_undo(folder: Path, *commands: str, meanwhile: tuple[str, ...] = (), redo: bool = False):
    """Let commands run, then the user's words for git, then an undo of the request."""
    steps = [decision("", run(one)) for one in commands]
    async with engine(folder, *steps, decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        for words in meanwhile:
            git(folder, *words.split())
        report = await duck.app.undoing.undo_request()
        if redo:
            await duck.app.undoing.redo()
    git(folder, "fsck", "--full", "--strict")
    return report


async def test_G10_a_commit_and_its_undo_are_told_without_the_files_of_git(folder: Path):
    prepared(folder)
    (folder / "c.txt").write_text("c\n")
    commit = run("git add -A && git commit -qm more")
    async with engine(folder, decision("", commit), decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        paths = [one.values["paths"] for one in duck.state.approval.impact if "paths" in one.values]
        assert paths == [".git", ".git"]
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        report = await duck.app.undoing.undo_request()
        events = duck.app.log.load(duck.state.session_id)
    assert history(folder) == ("first",)
    set_language("en")
    assert ".git/" not in undo_text(report)
    assert "Undone" in "\n".join(last_exchange(events)), "whoever returns sees that it was undone"


async def test_G8_a_commit_built_on_by_the_user_stays_whole(folder: Path):
    prepared(folder)
    made = "echo two > a.txt; git add .; git commit -qm two"
    report = await after_undo(folder, made, meanwhile=("commit --allow-empty -qm mine",))
    assert history(folder) == ("mine", "two", "first")
    assert git(folder, "show", "HEAD:a.txt") == "two"
    assert [(one.path, one.reason) for one in report.left] == [(".git", "built_on")]
    set_language("en")
    assert "git history in .git" in undo_text(report)


async def test_G8_a_branch_built_elsewhere_keeps_its_commits(folder: Path):
    prepared(folder)
    made = "echo two > a.txt; git add .; git commit -qm two"
    report = await after_undo(folder, made, meanwhile=("branch kept", "status"))
    assert history(folder) == ("first",)
    assert git(folder, "show", "kept:a.txt") == "two"
    assert report.left == ()
    assert git(folder, "status", "--short") == ""


async def test_G8_commits_are_undone_though_git_rewrote_its_index(folder: Path):
    prepared(folder)
    index = folder / ".git/index"
    before = index.read_bytes()
    git(folder, "config", "core.untrackedCache", "true")
    commands = (
        "echo two > a.txt; git add .; git commit -qm two",
        "echo 3 > b.txt; git add .; git commit -qm 3",
    )
    report = await after_undo(folder, *commands, meanwhile=("update-index --refresh --force-write-index",))
    assert (history(folder), report.left) == (("first",), ())
    assert index.read_bytes() == before
    assert git(folder, "status", "--short") == ""


async def test_G8_what_the_user_staged_is_not_lost(folder: Path):
    prepared(folder)
    (folder / "mine.txt").write_text("mine\n")
    report = await after_undo(folder, "echo 2 > a.txt; git add a.txt; git commit -qm 2", meanwhile=("add .",))
    assert history(folder) == ("2", "first")
    assert git(folder, "show", ":mine.txt") == "mine"
    assert [one.reason for one in report.left] == ["built_on"]


async def test_G8_an_undone_commit_can_be_redone(folder: Path):
    prepared(folder)
    await after_undo(folder, "echo two > a.txt; git add .; git commit -qm two", redo=True)
    assert history(folder) == ("two", "first")
    assert git(folder, "status", "--short") == ""


async def test_G8_a_repacked_repository_stays_whole(folder: Path):
    prepared(folder)
    await after_undo(
        folder, "echo two > a.txt; git add .; git commit -qm two", meanwhile=("branch kept", "gc --quiet")
    )
    assert git(folder, "show", "kept:a.txt") == "two"
