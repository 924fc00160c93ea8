"""G9, M1: texts for the user about the work of a command and of a request."""

from pathlib import Path

from duckflow.domain.events import ActionFinished
from duckflow.i18n.catalogue import set_language
from duckflow.ui.views.events import Describer
from fakes.engine import action, decision, engine
from fakes.repository import git, make_repository


def run(command: str) -> dict[str, object]:
    return {"operation": "shell.run", "args": {"command": command}}


async def test_G9_M1_the_user_reads_the_names_of_deleted_and_moved_files_even_if_git_ignores_them(
    folder: Path,
):
    make_repository(folder)
    (folder / ".gitignore").write_text("data/\ndb.sqlite3\n")
    for name in ("data/a.csv", "db.sqlite3", "drafts/plan.md", "__pycache__/a.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    command = (
        "rm -r data db.sqlite3 __pycache__; mkdir docs; mv drafts/plan.md docs; rmdir drafts; echo 1 > new"
    )
    async with engine(folder, decision("", run(command)), decision("Done."), mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        (ended,) = duck.of(ActionFinished)
        told = {one.key: one.values["paths"] for one in ended.told}
    assert told == {
        "action.created": "new",
        "action.moved": "drafts/plan.md → docs/plan.md",
        "action.deleted": "db.sqlite3, drafts/, data/ (1)",
    }


async def test_M1_a_request_ends_with_what_was_made_what_ran_and_how_to_try_it(folder: Path):
    for name in ("old.txt", "calc.py"):
        (folder / name).write_text("1\n")
    make = decision(
        "",
        action("write_file", path="app/hello.py", content="print(1)\n"),
        run("rm old.txt; echo 2 >> calc.py; mkdir __pycache__; echo 1 > __pycache__/a.pyc"),
        run("python3 app/hello.py"),
        run("ls app"),
    )
    answers = (make, decision("It is there."), decision("Nothing to do."))
    async with engine(folder, *answers, mode="auto") as duck:
        assert await duck.app.chat.say("go") == "done"
        assert await duck.app.chat.say("what is two and two?") == "done"
    wanted = {
        "en": [
            "📁 Created: app/hello.py · Changed: calc.py · Deleted: old.txt",
            "✓ Run without errors: $ python3 app/hello.py",
            "▶ Try it: python3 app/hello.py",
        ],
        "ja": [
            "📁 作成: app/hello.py · 変更: calc.py · 削除: old.txt",
            "✓ 実行して成功: $ python3 app/hello.py",
            "▶ 試すには: python3 app/hello.py",
        ],
    }
    for language, lines in wanted.items():
        set_language(language)
        describe = Describer()
        told = [one for event in duck.events if (one := describe(event)) and one.kind == "outcome"]
        assert [one.text.split("\n") for one in told] == [lines], (
            "a request that changed nothing has no summary"
        )


async def test_M1_a_file_that_is_as_it_was_before_the_request_is_not_among_the_changed_ones(folder: Path):
    (folder / "calc.py").write_text("1\n")
    there = action("write_file", path="calc.py", content="2\n")
    back = action("write_file", path="calc.py", content="1\n")
    answers = decision("", there, run("echo 1 > new.txt"), back, run("rm new.txt")), decision("Nothing left.")
    more = decision("", there, back, action("write_file", path="a.txt", content="a\n")), decision("Done.")
    async with engine(folder, *answers, *more, mode="auto") as duck:
        await duck.app.chat.say("go")
        await duck.app.chat.say("again")
        describe = Describer()
        told = [one for event in duck.events if (one := describe(event)) and one.kind == "outcome"]
    assert [one.text for one in told] == ["📁 Created: a.txt"]
