"""G9, M1: what the user reads about the work of a command and of a request."""

from pathlib import Path

from duckflow.domain.events import ActionFinished
from fakes.engine import decision, engine
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
