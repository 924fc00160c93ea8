"""Commands are judged by their effects, in each mode and for each kind of effect (G3, G5, G8, G9, G10)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.app.places import COPIES
from duckflow.config.places import state_dir
from duckflow.domain.decision import Action
from duckflow.domain.events import ActionFinished, ApprovalRequested
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.i18n.catalogue import set_language
from duckflow.safety.sandbox.copy.copy_writer import CopyWriter
from fakes.engine import Watched, decision, engine
from fakes.home import NO_SYSTEM_GIT
from fakes.long_work import run, tree, without_objects


async def try_out(folder: Path, mode: str, command: str) -> tuple[str, list[str], Watched]:
    """Return the outcome of the request, the operations asked about, and the engine."""
    async with engine(folder, decision("", run(command)), decision("Done."), mode=mode) as duck:
        outcome = await duck.app.chat.say("go")
        asked = [event.approval.action.operation for event in duck.of(ApprovalRequested)]
        return outcome, asked, duck


MODES = ("plan", "ask", "edits", "auto")
LOOKS = "cat a.txt; ls; python3 -c 'print(1)'"
CHANGES = "echo more >> a.txt; echo x > new.txt"
DELETES = "rm a.txt"
PROTECTED = "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml"
EXECUTABLE = "printf '#!/bin/sh\\n' > go.sh; chmod +x go.sh"
BUILDS = "mkdir -p node_modules/x && echo 1 > node_modules/x/i.js"
FAILS = "echo half >> a.txt; exit 1"
FAILS_WITH_CACHE = "mkdir -p __pycache__ && echo 1 > __pycache__/a.pyc; exit 1"

ASKS = {
    #                 plan   ask    edits  auto
    LOOKS: (False, False, False, False),
    CHANGES: (False, True, False, False),
    DELETES: (False, True, True, False),
    PROTECTED: (False, True, True, True),
    EXECUTABLE: (False, True, True, True),
    BUILDS: (False, True, False, False),
    FAILS: (False, True, False, False),
    FAILS_WITH_CACHE: (False, False, False, False),
}
"""Modes that ask about each command after it has run."""


@pytest.mark.parametrize("column", range(4), ids=MODES)
async def test_G3_each_mode_asks_about_the_effects_it_should_and_changes_nothing_before(folder: Path, column):
    mode, wrong = MODES[column], []
    steps = [step for command in ASKS for step in (decision("", run(command)), decision("Done."))]
    async with engine(folder, *steps, mode=mode) as duck:
        for command, asks in ASKS.items():
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            (folder / "a.txt").write_text("one\n")
            before, expected = tree(folder), asks[column]
            duck.events.clear()
            outcome = await duck.app.chat.say("go")
            asked = [event.approval.action.operation for event in duck.of(ApprovalRequested)]
            if bool(asked) is not expected or (asked and outcome != "awaiting_approval"):
                wrong.append(f"{command}: asked {asked}, {outcome}")
            dropped = mode == "ask" and command == FAILS_WITH_CACHE  # a cache is not worth a question
            stays = expected or dropped or mode == "plan" or command == LOOKS
            if (tree(folder) == before) is not stays:
                wrong.append(f"{command}: the folder is {sorted(tree(folder))}")
            if mode == "plan" and command == CHANGES and "Thrown away" not in duck.of(ActionFinished)[0].text:
                wrong.append("plan does not say that it threw something away")
            if asked:
                await duck.app.chat.answer(AnswerApproval(yes=False, reason="not that"))
    assert not wrong


async def test_G9_a_yes_takes_over_exactly_what_was_shown_and_undo_takes_all_of_it_back(folder: Path):
    """Files, links, folders and bits; M4: the texts about them are in the user's language."""
    set_language("ja")
    (folder / "old").mkdir()
    (folder / "old/a.txt").write_text("one\n")
    (folder / "keep.sh").write_text("x\n")
    before = tree(folder)
    command = (
        "mv old/a.txt b.txt && rmdir old && mkdir -p d/e && ln -s b.txt l && chmod 600 keep.sh && echo > d/é"
        " && mkdir node_modules && echo > node_modules/z"
    )
    async with engine(folder, decision("", run(command)), decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        (asked,) = duck.of(ApprovalRequested)
        shown = asked.approval.difference
        parts = (
            "rename from old/a.txt",
            "l -> b.txt",
            "d/é",
            "new mode 600",
            "(node_modules/: ファイル 1 個",
        )
        assert [part for part in parts if part not in shown] == []
        assert without_objects(tree(folder)) == without_objects(before)
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        after = tree(folder)
        assert (folder / "l").readlink() == Path("b.txt")
        assert (folder / "keep.sh").stat().st_mode & 0o777 == 0o600
        report = await duck.app.undoing.undo()
        assert (report.left, report.commands) == ((), ())
        assert without_objects(tree(folder)) == without_objects(before)
        await duck.app.undoing.redo()
        assert tree(folder) == after


async def test_G9_a_no_throws_it_away_and_the_model_is_told(folder: Path):
    (folder / "a.txt").write_text("one\n")
    async with engine(folder, decision("", run(CHANGES)), decision("As you like."), mode="ask") as duck:
        await duck.app.chat.say("go")
        copies = list((state_dir() / COPIES).iterdir())
        assert await duck.app.chat.answer(AnswerApproval(yes=False, reason="not now")) == "done"
        said = "What this command changed was not kept; earlier changes stay. The user said no: not now"
        ended = duck.of(ActionFinished)[-1]
        assert (ended.outcome, ended.text) == ("refused", said)
        assert copies
        assert not any(copy.exists() for copy in copies)
    assert (list(tree(folder)), (folder / "a.txt").read_text()) == (["a.txt"], "one\n")


async def test_G5_a_file_that_changed_after_the_question_is_asked_about_again(folder: Path):
    (folder / "a.txt").write_text("one\n")
    async with engine(folder, decision("", run(CHANGES)), decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        (folder / "a.txt").write_text("mine\n")
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        first, again = duck.of(ApprovalRequested)
        assert first.approval.digest != again.approval.digest
        assert again.approval.because == "conflict"
        assert (folder / "a.txt").read_text() == "mine\n"
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        assert (folder / "a.txt").read_text() == "one\nmore\n"
        await duck.app.undoing.undo()
        assert (folder / "a.txt").read_text() == "mine\n"


async def test_G3_the_question_survives_the_end_of_the_process(folder: Path):
    (folder / "a.txt").write_text("one\n")
    async with engine(folder, decision("", run(CHANGES)), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        session = duck.state.session_id
    async with engine(folder, decision("Done."), mode="ask", session=session) as duck:
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
    assert (folder / "a.txt").read_text() == "one\nmore\n"


async def test_G3_if_what_waited_is_gone_it_is_said_and_nothing_is_run(folder: Path):
    (folder / "a.txt").write_text("one\n")
    async with engine(folder, decision("", run(CHANGES)), mode="ask") as duck:
        await duck.app.chat.say("go")
        session = duck.state.session_id
    shutil.rmtree(state_dir() / COPIES)
    async with engine(folder, decision("I see."), mode="ask", session=session) as duck:
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert "no longer kept" in duck.of(ActionFinished)[0].text
    assert (folder / "a.txt").read_text() == "one\n"


async def test_G9_commands_of_one_list_see_each_others_effects(folder: Path):
    steps = decision("", run("echo 1 > a"), run("cat a && echo 2 >> a"), run("cat a"))
    async with engine(folder, steps, decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert "1\n2" in duck.of(ActionFinished)[2].text
    async with engine(folder, steps, decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
        assert "1\n2" in duck.of(ActionFinished)[-1].text


async def test_G3_always_covers_what_only_the_mode_asks_about(folder: Path):
    (folder / "x").touch()
    steps = decision("", run("cp -p x a"), run("cp -p x b"))
    async with engine(folder, steps, decision("Done."), mode="ask") as duck:
        await duck.app.chat.say("go")
        assert await duck.app.chat.answer(AnswerApproval(yes=True, always=True)) == "done"
    assert sorted(tree(folder)) == ["a", "b", "x"]


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_OPTIONAL_LOCKS": "0", **NO_SYSTEM_GIT}
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def set_identity(folder: Path) -> None:
    """Name who commits in the repository's own settings: the sandbox knows no others."""
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")


def repository(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    set_identity(folder)
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")


WORK = (
    "git checkout -q -b topic && echo two >> a.txt && git commit -qam two && git checkout -q main"
    " && echo other > b.txt && git add b.txt && git commit -qm other && git merge -q topic -m merged"
    " && echo x >> a.txt && git stash -q && git stash pop -q && git tag v1 && git branch -d topic -q"
)
PLANTED = (
    "git config core.editor evil",
    "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "mkdir sub && cd sub && git init -q",
    "echo 'gitdir: ../x' > sub.git; mkdir s && echo 'gitdir: ../.git' > s/.git",
    "echo '* filter=x' > .git/info/attributes",
)


async def test_G10_ordinary_git_work_passes_and_all_of_it_can_be_taken_back(folder: Path):
    repository(folder)
    for mode in ("edits", "auto"):
        before = tree(folder)
        async with engine(folder, decision("", run(WORK)), decision("Done."), mode=mode) as duck:
            assert await duck.app.chat.say("go") == "done", duck.of(ActionFinished)[-1].text
            assert duck.of(ApprovalRequested) == []
            assert "merged" in git(folder, "log", "--oneline")
            assert git(folder, "status", "--porcelain") == " M a.txt\n"
            assert duck.of(ActionFinished)[0].changed == ("a.txt", "b.txt")
            assert (await duck.app.undoing.undo()).left == ()
        assert without_objects(tree(folder)) == without_objects(before)


async def test_G10_git_that_found_nothing_to_do_does_not_ask(folder: Path):
    """It ends with an error, and only its own index is another one."""
    repository(folder)
    (folder / "a.txt").touch()
    async with engine(folder, decision("", run("git add -A && git commit -m x")), mode="auto") as duck:
        await duck.app.chat.say("go")
        assert duck.of(ActionFinished)[0].exit_code == 1
        assert duck.of(ApprovalRequested) == []


async def test_G10_what_makes_git_run_a_program_asks_in_every_mode(tmp_path: Path):
    wrong: list[str] = []
    for number, command in enumerate(PLANTED):
        folder = tmp_path / str(number)
        folder.mkdir()
        repository(folder)
        before = tree(folder)
        outcome, asked, _ = await try_out(folder, "auto", command)
        if outcome != "awaiting_approval" or not asked or tree(folder) != before:
            wrong.append(f"{command}: {outcome}")
    assert not wrong


def worktree(base: Path) -> tuple[Path, Path]:
    """A repository, and a worktree of it beside it."""
    main, folder = base / "main", base / "other"
    main.mkdir()
    repository(main)
    git(main, "worktree", "add", "-q", str(folder))
    git(main, "worktree", "add", "-q", str(base / "third"))
    return main, folder


async def test_G10_git_works_in_a_worktree_and_all_of_it_can_be_undone(tmp_path: Path):
    main, folder = worktree(tmp_path)
    before = tree(main), tree(folder)
    work = "echo x > b.txt && git add b.txt && git commit -qm b && git branch side && git pack-refs --all"
    steps = decision("", run(work)), decision("", run("git mv a.txt c.txt && git commit -qm c"))
    async with engine(folder, *steps, decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done", duck.of(ActionFinished)[-1].text
        assert duck.of(ApprovalRequested) == []
        assert [one.exit_code for one in duck.of(ActionFinished)] == [0, 0]
        assert git(main, "log", "--format=%s", "-2", "other") == "c\nb\n"
        assert git(folder, "status", "--porcelain") == ""
        assert (await duck.app.undoing.undo(2)).left == ()
    assert [without_objects(tree(one)) for one in (main, folder)] == [without_objects(one) for one in before]


def submodule(base: Path) -> tuple[Path, Path]:
    """A repository with another one inside, whose git directory is in that of the first."""
    library, parent = base / "library", base / "parent"
    for one in (library, parent):
        one.mkdir()
        repository(one)
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sub/lib")
    git(parent, *add)
    git(parent, "commit", "-qam", "with a library")
    inner = parent / "sub" / "lib"
    set_identity(inner)  # a clone does not take it over
    return parent, inner


IN_A_SUBMODULE = """git checkout -q -b work && echo x > b.txt && git add b.txt && git commit -qm b &&
echo y >> b.txt && git stash -q && git stash pop -q && git checkout -q b.txt &&
git checkout -q -b side HEAD~1 && echo z > z.txt && git add z.txt && git commit -qm z && git rebase -q work &&
git log --format=%s -2"""


async def test_G10_git_works_in_submodules_and_all_of_it_can_be_undone(tmp_path: Path):
    parent, inner = submodule(tmp_path)
    before = tree(parent)
    both = f"cd sub/lib && {IN_A_SUBMODULE} && cd ../.. && git add -A && git commit -qm bump && git status -s"
    for folder, command in ((parent, both), (inner, IN_A_SUBMODULE)):
        async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
            assert await duck.app.chat.say("go") == "done", duck.of(ActionFinished)[-1].text
            assert duck.of(ApprovalRequested) == []
            assert duck.of(ActionFinished)[0].exit_code == 0
            assert git(inner, "log", "--format=%s", "-2") == "z\nb\n"
            assert (await duck.app.undoing.undo()).left == ()
        (parent / "sub/lib.jsonl").unlink(missing_ok=True)  # the fake model's script
        assert without_objects(tree(parent)) == without_objects(before)


PLANTED_IN_SUBMODULES = (
    "git config submodule.sub/lib.update '!./x'",
    "git config -f .gitmodules submodule.sub/lib.url ext::./x",
    "git -C sub/lib config core.fsmonitor ./x",
    "echo x > .git/modules/sub/lib/hooks/post-commit; chmod +x .git/modules/sub/lib/hooks/post-commit",
    "echo '* filter=x' > .git/modules/sub/lib/info/attributes",
    "echo 'gitdir: ../../evil' > sub/lib/.git",
    "rm sub/lib/.git; git init -q sub/lib",
)


async def test_G10_what_makes_git_run_a_program_in_submodules_asks(tmp_path: Path):
    wrong: list[str] = []
    parent, _ = submodule(tmp_path)
    before = tree(parent)
    for command in PLANTED_IN_SUBMODULES:
        outcome, asked, _ = await try_out(parent, "auto", command)
        if outcome != "awaiting_approval" or not asked or tree(parent) != before:
            wrong.append(f"{command}: {outcome}")
    assert not wrong


SHARED = "$(git rev-parse --git-common-dir)"
BEHIND_A_GIT_FILE = (
    "git config core.fsmonitor ./x",
    f"echo x > {SHARED}/hooks/post-commit; echo '* filter=x' > {SHARED}/info/attributes",
    f"echo 'ref: refs/heads/x' > {SHARED}/worktrees/third/HEAD",
    "echo /tmp > $(git rev-parse --git-dir)/commondir",
    "echo 'gitdir: /tmp' > .git",
    f"ln -s /etc/passwd {SHARED}/objects/link",
)


async def test_G10_what_lies_behind_a_git_file_is_as_protected_as_git(tmp_path: Path):
    wrong: list[str] = []
    main, folder = worktree(tmp_path)
    before = tree(main), tree(folder)
    for command in BEHIND_A_GIT_FILE:
        outcome, asked, duck = await try_out(folder, "auto", command)
        changed = (tree(main), tree(folder)) != before
        if outcome != "awaiting_approval" or not asked or changed:
            wrong.append(f"{command}: {outcome} {duck.of(ActionFinished)[-1].text}")
    assert not wrong, "\n".join(wrong)
    # A repository in place of the file is never applied.
    outcome, _, _ = await try_out(folder, "auto", "rm .git && git init -q && git config core.fsmonitor ./x")
    assert (outcome, (tree(main), tree(folder))) == ("done", before)


async def test_G10_a_git_file_that_nothing_leads_back_to_opens_nothing(tmp_path: Path):
    """It may have come with the project, and name any repository of the user's."""
    main, _ = worktree(tmp_path)
    (main / ".git" / "SECRET").write_text("SECRET")
    for number, target in enumerate((main / ".git", main / ".git" / "worktrees" / "other")):
        folder = tmp_path / f"hostile{number}"
        folder.mkdir()
        (folder / ".git").write_text(f"gitdir: {target}\n")
        _, _, duck = await try_out(folder, "auto", f"git log; cat {main}/.git/SECRET; ls {main}")
        said = duck.of(ActionFinished)[0].text
        assert "not a git repository" in said
        assert "SECRET" not in said.replace("/SECRET", "")


async def test_G9_what_the_user_runs_needs_no_yes_and_can_be_undone(folder: Path):
    (folder / "a.txt").write_text("one\n")
    async with engine(folder, mode="ask") as duck:
        action = Action(operation="shell.run", args={"command": "rm a.txt"})
        await duck.app.dispatcher.run_now([action], by_user=True)
        assert tree(folder) == {}
        await duck.app.undoing.undo()
    assert (list(tree(folder)), (folder / "a.txt").read_text()) == (["a.txt"], "one\n")


async def test_G3_the_network_is_asked_about_before_the_command_runs(folder: Path):
    for mode in ("plan", "ask", "edits", "auto"):
        steps = decision("", run("echo ran > a", network=True))
        async with engine(folder, steps, decision("Done."), mode=mode) as duck:
            await duck.app.chat.say("go")
            (asked,) = duck.of(ApprovalRequested)
            assert (asked.approval.action.operation, duck.of(ActionFinished)) == ("shell.run", []), mode


class Killed(BaseException):
    """Stands for the end of the process: no code catches it."""


async def test_G9_a_crash_while_effects_are_taken_over_is_finished_and_can_be_undone(
    folder: Path, monkeypatch
):
    repository(folder)
    before = tree(folder)
    real, made = CopyWriter._change, []

    def dying(self, effect, *how):
        if len(made) == 7:
            raise Killed
        made.append(effect)
        real(self, effect, *how)

    async with engine(folder, decision("", run(WORK)), mode="auto") as duck:
        session = duck.state.session_id
        with monkeypatch.context() as patched:
            patched.setattr(CopyWriter, "_change", dying)
            with pytest.raises(Killed):
                await duck.app.chat.say("go")
    assert tree(folder) != before
    async with engine(folder, session=session, mode="auto") as duck:
        assert "merged" in git(folder, "log", "--oneline")
        assert git(folder, "status", "--porcelain") == " M a.txt\n"
        assert duck.of(ActionFinished)[0].outcome == "ok"
        assert (await duck.app.undoing.undo()).left == ()
    assert without_objects(tree(folder)) == without_objects(before)


async def test_G9_caches_and_ignored_files_are_only_counted_and_can_be_undone_like_the_rest(folder: Path):
    """The work is named, also in a source folder with the name of a build folder."""
    repository(folder)
    (folder / ".gitignore").write_text("*.log\n/out/\nlocal.cfg\n")
    (folder / "src/build").mkdir(parents=True)
    (folder / "src/build/core.py").write_text("x = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "sources")
    before = tree(folder)
    made = "src/__pycache__/a.pyc .pytest_cache/x src/b.pyc out/report.csv out/more.csv run.log local.cfg"
    command = (
        f"mkdir -p src/__pycache__ .pytest_cache out && echo 1 | tee {made} > /dev/null; "
        "echo 2 > src/build/core.py; echo new > src/build/new.py; echo mine > src/work.py"
    )
    async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        (ended,) = duck.of(ActionFinished)
        assert ended.text.splitlines()[-1] == (
            "It changed: new src/build/new.py, src/work.py; changed src/build/core.py; "
            "and 7 ignored files (local.cfg, run.log, out/)."
        )
        assert set(ended.changed) == {"src/work.py", "src/build/core.py", "src/build/new.py"}
        assert (folder / "out/more.csv").read_text() == "1\n"
        ignored = {change.path for change in ended.changes if change.ignored}
        assert {"src/__pycache__/a.pyc", "src/b.pyc", "run.log", "out/report.csv"} <= ignored
        assert not ignored & set(ended.changed)
        assert (await duck.app.undoing.undo()).left == ()
    assert without_objects(tree(folder)) == without_objects(before)


async def test_caches_are_known_by_name_without_git(folder: Path):
    command = "mkdir -p __pycache__ && echo 1 > __pycache__/a.pyc; echo 1 > .coverage; echo more >> a.txt"
    async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        (ended,) = duck.of(ActionFinished)
        assert ended.text.splitlines()[-1] == "It changed: new a.txt."
        assert ended.changed == ("a.txt",)


async def test_H4_a_pipeline_that_failed_in_its_first_part_is_told_and_asks_nothing(folder: Path):
    """All of the command ran, so that nothing is half done; but it shows no success."""
    command = "echo more >> a.txt; (echo 1 failed; exit 1) | tail -3"
    async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        (ended,) = duck.of(ActionFinished)
        assert ended.text.startswith("exit code 1 ((…) 1 | tail 0)\n1 failed\nIt changed: ")
        assert ended.exit_code == 1
        assert {e.supports for e in duck.state.transcript if e.evidence_id == ended.evidence_id} == {
            "nothing"
        }


async def test_G8_a_folder_that_became_a_link_gets_its_files_back(folder: Path):
    (folder / "f" / "deep").mkdir(parents=True)
    (folder / "f" / "deep" / "c").write_text("mine\n")
    (folder / "z").write_text("z\n")
    (folder / "d").symlink_to("z")
    before = tree(folder)
    swap = "mv f tmp && mv d f && mv tmp d"
    async with engine(folder, decision("", run(swap)), decision("Done."), mode="edits") as duck:
        await duck.app.chat.say("go")
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert (folder / "f").is_symlink()
        assert (await duck.app.undoing.undo_request()).left == ()
        assert tree(folder) == before
        await duck.app.undoing.redo()
        assert (folder / "d" / "deep" / "c").read_text() == "mine\n"
        await duck.app.undoing.undo_request()
        assert tree(folder) == before
