"""Questions about effects: untracked work that would be deleted, and names that could deceive (G9)."""

import os
import subprocess
from pathlib import Path
from typing import Any

from duckflow.domain.events import ActionFinished, ApprovalAnswered, ApprovalRequested
from duckflow.domain.questions.approval import AnswerApproval
from fakes.engine import Watched, decision, engine
from fakes.home import NO_SYSTEM_GIT
from fakes.rows import every_row

COMMIT = "git -c user.name=n -c user.email=n@example.org commit -qam rules"


def run(command: str) -> str:
    return decision("", {"operation": "shell.run", "args": {"command": command}})


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *own, *words], cwd=folder, env={**os.environ, **NO_SYSTEM_GIT}, check=True)


def repository(folder: Path, rules: str = "", **files: str) -> None:
    """A repository whose commit has these rules. The files are untracked."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(rules)
    (folder / "main.py").write_text("1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    for path, text in files.items():
        place = folder / path.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def asked(duck: Watched) -> list[Any]:
    return [one.approval for one in duck.of(ApprovalRequested)]


@every_row(
    "hides, deletes",
    [
        ("echo notes/ >> .gitignore", "rm -rf notes"),
        ("echo notes >> .gitignore", "python3 -c \"import shutil; shutil.rmtree('notes')\""),
        ("echo '*' > notes/.gitignore", "find notes -type f -delete"),
        (f"echo notes/ >> .gitignore; {COMMIT}", "rm -rf notes"),
    ],
)
async def test_G9_rules_of_git_count_only_if_they_were_committed_before_the_request(
    tmp_path: Path, hides: str, deletes: str
):
    """Else one command could write a rule, and the next one delete everything without a question."""
    folder = tmp_path / "work"
    repository(folder, notes__a="three weeks\n")
    async with engine(folder, run(hides), run(deletes), decision("Done."), mode="edits") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert (folder / "notes/a").exists()


async def test_G9_the_commit_before_the_request_counts_after_a_restart_too(tmp_path: Path):
    repository(tmp_path / "work", notes__a="three weeks\n")
    steps = [run(f"echo notes/ >> .gitignore; {COMMIT}"), run("touch x.sh")]
    async with engine(tmp_path / "work", *steps, mode="edits") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        session = duck.state.session_id
    steps = [run("rm -rf notes"), decision("Done.")]
    async with engine(tmp_path / "work", *steps, mode="edits", session=session) as duck:
        assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "awaiting_approval"
        assert asked(duck)[-1].action.args["command"] == "rm -rf notes"
        assert (tmp_path / "work/notes/a").exists()


async def test_G9_work_that_was_moved_is_still_the_users(tmp_path: Path):
    folder = tmp_path / "work"
    repository(folder, notes__a="three weeks\n")
    steps = [run("mv notes/a b"), run("rm b"), decision("Done.")]
    async with engine(folder, *steps, mode="edits") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert (folder / "b").read_text() == "three weeks\n"


async def test_G9_rules_committed_by_an_earlier_request_count(tmp_path: Path):
    repository(tmp_path / "work", notes__a="x\n")
    steps = [
        run(f"echo notes/ >> .gitignore; {COMMIT}"),
        decision("Done."),
        run("rm -rf notes"),
        decision("Done."),
    ]
    async with engine(tmp_path / "work", *steps, mode="edits") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert await duck.app.chat.say("go") == "done"
        assert not asked(duck)
        assert not (tmp_path / "work/notes").exists()


async def test_G9_a_file_that_git_tracks_is_not_ignored_even_if_the_command_untracks_it(tmp_path: Path):
    repository(tmp_path / "work", "data/\n", data__new="mine\n")
    git(tmp_path / "work", "add", "-f", "data/new")
    steps = [run("git rm -q --cached data/new; rm -r data"), decision("Done.")]
    async with engine(tmp_path / "work", *steps, mode="edits") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        (one,) = asked(duck)
        assert any(part.values.get("paths") == "data/new" for part in one.impact)


@every_row(
    "rules, command, asks",
    [
        ("", "rm -rf out", True),
        ("out/\n", "rm -rf out", False),
        ("", "mkdir target && echo 1 > target/x", False),
    ],
)
async def test_G9_a_build_folders_name_alone_makes_no_work_deletable(
    tmp_path: Path, rules: str, command: str, asks: bool
):
    """Ignored by a commit, or made by the session itself, its files need no question."""
    folder = tmp_path / "work"
    repository(folder, rules, out__result="mine\n")
    steps = [run(command), run("rm -rf target"), decision("Done.")]
    async with engine(folder, *steps, mode="edits") as duck:
        await duck.app.chat.say("go")
        assert bool(asked(duck)) is asks


@every_row(
    "rules, paths, command",
    [
        ("data/\n", "data/a data/b", "rm -rf data"),
        ("data/\n", "data/a", "echo > data/a"),
        ("", "large", "rm large"),
        ("", "large", "echo > large"),
        ("", "a b c d", "rm a b c d"),
    ],
)
async def test_G9_losing_what_is_too_large_to_keep_asks_in_every_mode(
    tmp_path: Path, rules: str, paths: str, command: str
):
    folder = tmp_path / "work"
    repository(folder, rules)
    for path in paths.split():
        (folder / path).parent.mkdir(exist_ok=True)
        with (folder / path).open("wb") as file:
            file.truncate(55_000_000 if "d" in paths.split() else 70_000_000)
    for mode in ("edits", "auto"):
        async with engine(folder, run(command), decision("Done."), mode=mode) as duck:
            assert await duck.app.chat.say("go") == "awaiting_approval"
            (one,) = asked(duck)
            said = {part.key for part in one.impact}
            assert said & {"approval.impact.not_kept", "approval.impact.undo"} == {"approval.impact.not_kept"}


async def test_G9_a_few_deleted_files_are_kept_though_the_folder_is_too_large_to_keep(tmp_path: Path):
    folder = tmp_path / "work"
    repository(folder, "data/\n", data__old="mine\n")
    command = "rm data/old; for n in $(seq 2100); do echo > data/$n; done"
    async with engine(folder, run(command), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert not asked(duck)
        assert not (folder / "data/old").exists()
        await duck.app.undoing.undo()
        assert (folder / "data/old").read_text() == "mine\n"


async def test_SAFETY_8_a_name_or_target_with_a_line_break_makes_no_lines_of_its_own(tmp_path: Path):
    """Else they could look like parts of the difference, or end it."""
    folder = tmp_path / "work"
    folder.mkdir()
    command = "mkdir $'new\\nfolder'; ln -s $'x\\n+++ b/other\\x1b[2J' link;"
    command += " echo 1 > $'a\\n--- b'; mv a.txt $'to\\rhere'"
    (folder / "a.txt").write_text("one\n")
    async with engine(folder, run(command), decision("Done."), mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        approval = duck.of(ApprovalRequested)[0].approval
        lines = approval.difference.split("\n")
        assert "(new link link -> x\\u000a+++ b/other\\u001b[2J)" in lines
        assert "new\\u000afolder/" in approval.difference
        assert "rename to to\\u000dhere" in lines
        assert "+++ b/a\\u000a--- b" in lines
        assert not any("\n" in str(value) for part in approval.impact for value in part.values.values())
        await duck.app.chat.answer(AnswerApproval(yes=True))
        assert (folder / "a\n--- b").exists()
        assert duck.of(ActionFinished)[-1].text.count("\n") == 0


@every_row(
    "command, asks",
    [
        ("echo x > out/log", False),
        ("git -c user.name=n -c user.email=n@b commit -q --allow-empty -m x", False),
        ("echo x > new", True),
        ("rm main.py", True),
    ],
)
async def test_G3_a_command_that_ran_out_of_time_asks_only_about_changes_to_the_work(
    tmp_path: Path, command: str, asks: bool
):
    folder = tmp_path / "work"
    repository(folder, "out/\n", out__log="")
    late = {"operation": "shell.run", "args": {"command": f"{command}; sleep 600", "timeout_s": 2}}
    for mode in ("edits", "auto"):
        async with engine(folder, decision("", late), decision("Done."), mode=mode) as duck:
            await duck.app.chat.say("go")
            assert [one.because for one in asked(duck)] == ["failed"] * asks, mode
            assert asks or duck.of(ActionFinished)[0].text.startswith("stopped after 2 s")


async def test_G1_what_a_command_deletes_is_asked_about_every_time(tmp_path: Path):
    """Else an "always" for `sh do` would cover whatever that deletes later."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "do").write_text("echo x >> $1; rm -f $2\n")
    for name in ("a", "b"):
        (folder / name).write_text("mine\n")
    steps = run("sh do new"), run("sh do new a"), run("sh do new b"), decision("Done.")
    async with engine(folder, *steps, mode="ask") as duck:
        assert await duck.app.chat.say("go") == "awaiting_approval"
        assert duck.state.approval.kind is not None
        for _ in range(2):
            outcome = await duck.app.chat.answer(
                AnswerApproval(yes=True, always=not duck.of(ApprovalAnswered))
            )
            assert outcome == "awaiting_approval"
            assert duck.state.approval.kind is None
        assert (folder / "b").exists()


async def test_G3_a_look_that_refreshes_gits_index_changes_nothing(tmp_path: Path):
    """`git status` notes the times of unchanged files; what is staged stays the same."""
    folder = tmp_path / "work"
    repository(folder)
    os.utime(folder / "main.py", (1_000_000_000, 1_000_000_000))
    stage = "echo 2 > main.py; git add main.py"
    answers = [run("git status --short"), run(stage), decision("done")]
    async with engine(folder, *answers, mode="ask") as duck:
        assert await duck.app.chat.say("look") == "awaiting_approval"
        (question,) = asked(duck)
        assert stage in question.difference, "the look did not ask"
        first = next(one for one in duck.of(ActionFinished) if one.operation == "shell.run")
        assert (first.outcome, first.exit_code) == ("ok", 0)
