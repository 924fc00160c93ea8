"""An approval holds for what was shown and the files as they were, up to the write (G5, SAFETY 7)."""

from pathlib import Path

from duckflow.domain.events import ActionFinished, ActionStarted, ApprovalRequested, StoredEvent
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.safety.policy.command_risk import MOST_NAMED, named_files
from duckflow.tools.editing.edits import apply_edits
from duckflow.tools.files import changing
from fakes.engine import action, decision, engine
from fakes.rows import every_row

OTHERS = "somebody else's\n"


def once(duck, kind: type, act) -> None:
    """At the first event of this kind, do something behind the engine's back."""
    done: list[bool] = []

    def see(what: object) -> None:
        if isinstance(what, StoredEvent) and isinstance(what.event, kind) and not done:
            done.append(True)
            act()

    duck.app.session.subscribe(see)


def at_the_write(duck, act) -> None:
    """Do something when the new content is on the disk beside the old, right before it takes its place."""
    keep = duck.app.kept.keep
    done: list[bool] = []

    def meddling(*args: object) -> None:
        keep(*args)
        if not done:
            done.append(True)
            act()

    duck.app.kept.keep = meddling


CHANGES = {
    "write": action("write_file", path="a.txt", content="new\n"),
    "edit": action("edit_file", path="a.txt", edits=[{"find": "old", "replace": "new"}]),
    "delete": action("delete_file", path="a.txt"),
    "move": action("move_file", path="a.txt", to="b.txt"),
}


@every_row("change", ["write", "delete", "move"])
@every_row("moment", ["question", "start", "write"])
async def test_G5_a_file_that_changed_at_any_moment_is_asked_about_anew(
    folder: Path, change: str, moment: str
):
    target = folder / "a.txt"
    target.write_text("old\n")
    async with engine(folder, decision("", CHANGES[change]), decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        first = duck.state.approval
        if moment == "question":
            target.write_text(OTHERS)
        elif moment == "start":
            once(duck, ActionStarted, lambda: target.write_text(OTHERS))
        else:
            at_the_write(duck, lambda: target.write_text(OTHERS))
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert target.read_text() == OTHERS
        assert not (folder / "b.txt").exists()
        second = duck.state.approval
        assert second.digest != first.digest
        assert second.action == first.action
        assert second.because == ("changed" if moment == "question" else "mode")
        assert change == "move" or f"-{OTHERS}" in second.difference
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        assert len(duck.of(ApprovalRequested)) == 2
    assert not target.exists() if change != "write" else target.read_text() == "new\n"


@every_row("moment", ["start", "write"])
async def test_G5_edits_that_do_not_fit_the_changed_file_fail_and_change_nothing(folder: Path, moment: str):
    target = folder / "a.txt"
    target.write_text("old\n")
    async with engine(folder, decision("", CHANGES["edit"]), decision("Hm."), mode="ask") as duck:
        await duck.app.chat.say("go")
        if moment == "start":
            once(duck, ActionStarted, lambda: target.write_text(OTHERS))
        else:
            at_the_write(duck, lambda: target.write_text(OTHERS))
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        assert "failed" in [one.outcome for one in duck.of(ActionFinished)]
    assert target.read_text() == OTHERS


async def test_G5_edits_that_would_still_fit_are_shown_again_and_not_made(folder: Path):
    target = folder / "a.txt"
    target.write_text("old\n")
    async with engine(folder, decision("", CHANGES["edit"]), decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        once(duck, ActionStarted, lambda: target.write_text("old\n" + OTHERS))
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert target.read_text() == "old\n" + OTHERS
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert target.read_text() == "new\n" + OTHERS


async def test_an_edit_is_computed_once_and_written_as_it_was_shown(folder: Path, monkeypatch):
    (folder / "a.txt").write_text("old\n")
    computed: list[object] = []
    monkeypatch.setattr(changing, "apply_edits", lambda *given: computed.append(given) or apply_edits(*given))
    for mode in ("ask", "auto"):
        async with engine(folder, decision("", CHANGES["edit"]), decision("Done."), mode=mode) as duck:
            outcome = await duck.app.chat.say("go")
            if mode == "ask":
                assert await duck.app.chat.proposal() == "new\n"
                outcome = await duck.app.chat.answer(AnswerApproval(yes=True))
            assert outcome == "done"
        assert (folder / "a.txt").read_text() == "new\n"
        assert len(computed) == 1
        computed.clear()
        (folder / "a.txt").write_text("old\n")


async def test_G5_a_file_that_appeared_meanwhile_is_not_overwritten(folder: Path):
    async with engine(folder, decision("", CHANGES["write"]), decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        at_the_write(duck, lambda: (folder / "a.txt").write_text(OTHERS))
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert (folder / "a.txt").read_text() == OTHERS
        assert f"-{OTHERS}" in duck.state.approval.difference


async def test_G5_a_script_that_changed_before_it_ran_is_asked_about_again(folder: Path):
    (folder / "x.sh").write_text("echo harmless > a.txt\n")
    command = {"operation": "shell.run", "args": {"command": "sh ./x.sh", "network": True}}
    async with engine(folder, decision("", command), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        (folder / "x.sh").write_text("echo swapped > a.txt\n")
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert not (folder / "a.txt").exists()
        # What it did is ordinary, and passes in this mode.
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert (folder / "a.txt").read_text() == "swapped\n"


NAMED = {
    "sh ./x.sh": "x.sh",
    "bash -c 'cd sub && python3 tools/a.py --flag=1'": "tools/a.py",
    "python -m pkg.mod -v": "pkg/mod.py",
    "FOO=1 /usr/bin/make -j4 test": "Makefile",
    "npm test": "package.json",
    "cat <script.sh|sh": "script.sh",
    "env X=run.sh sh $X": "run.sh",
}


def test_G5_the_files_a_command_names_are_found():
    missing = [command for command, path in NAMED.items() if path not in named_files(command)]
    assert not missing
    assert len(named_files("a b " * 100_000 + " ".join(map(str, range(1000))))) == MOST_NAMED


async def test_SAFETY_7_an_approval_is_used_once(folder: Path):
    same = decision("", CHANGES["write"], action("delete_file", path="a.txt"), CHANGES["write"])
    async with engine(folder, same, decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert duck.state.approval.before == {"a.txt": None}
        assert duck.state.approved is None
        assert not (folder / "a.txt").exists()


async def test_SAFETY_7_the_background_uses_an_answer_once_too(folder: Path):
    task = {"operation": "shell.run", "args": {"command": "pwd", "network": True}}
    tasks = {"operation": "task_loop.run", "args": {"task_list": [task, task]}}
    async with engine(folder, decision("", tasks, next_step="defer"), mode="ask") as duck:
        await duck.app.chat.say("go")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        first = duck.state.approval
        await duck.app.chat.answer(AnswerApproval(yes=True))
        await duck.app.session.wait_until(
            lambda state: state.approval is not None or not state.background_runs
        )
        assert duck.state.approval is not None, "the second task ran on the first one's answer"
        assert duck.state.approval.digest == first.digest
        assert duck.state.approval.approval_id != first.approval_id


async def test_G5_the_background_asks_again_where_a_file_changed_at_the_write(folder: Path):
    target = folder / "a.txt"
    target.write_text("old\n")
    tasks = {"operation": "task_loop.run", "args": {"task_list": [CHANGES["write"]]}}
    async with engine(folder, decision("", tasks, next_step="defer"), mode="ask") as duck:
        await duck.app.chat.say("go")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        at_the_write(duck, lambda: target.write_text(OTHERS))
        await duck.app.chat.answer(AnswerApproval(yes=True))
        await duck.app.session.wait_until(
            lambda state: state.approval is not None or not state.background_runs
        )
        assert target.read_text() == OTHERS
        assert f"-{OTHERS}" in duck.state.approval.difference
        await duck.app.chat.answer(AnswerApproval(yes=True))
        await duck.app.session.wait_until(lambda state: not state.background_runs)
    assert target.read_text() == "new\n"


async def test_G1_an_edit_of_a_task_of_the_background_is_done_instead(folder: Path):
    tasks = {"operation": "task_loop.run", "args": {"task_list": [CHANGES["write"]]}}
    async with engine(folder, decision("", tasks, next_step="defer"), mode="ask") as duck:
        await duck.app.chat.say("go")
        await duck.app.session.wait_until(lambda state: state.approval is not None)
        await duck.app.chat.answer(AnswerApproval(yes=True, edited="mine\n"))
        await duck.app.session.wait_until(lambda state: not state.background_runs)
    assert (folder / "a.txt").read_text() == "mine\n"
