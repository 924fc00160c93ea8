"""M8: pushing a run's branch, and the text of its draft pull request."""

from pathlib import Path

import sqlalchemy as sa

from duckflow.fleet.database import runs
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.runs import RunOptions
from duckflow.fleet.worker import FleetWorker
from fakes.engine import action, decision, write_script
from fakes.repository import duckflow, git, make_repository


async def published(fleet: Fleet, repository: Path, request: str, state: str = "done") -> str:
    write = decision("", action("write_file", path="new.py", content="print(1)\n"))
    said = decision("I wrote new.py. @someone ![](http://example.com/x.png)")
    script = write_script(repository.parent / "script.jsonl", [write, *[said] * 9])
    (run,) = fleet.submit(repository, request, RunOptions(model=f"scripted:{script}", mode="edits"))
    task = await FleetWorker(fleet.runs, machine="here").take()
    assert task is not None
    await task
    with fleet.runs.database.begin() as connection:
        connection.execute(sa.update(runs).where(runs.c.id == run).values(state=state))
    return run


async def test_M8_a_branch_is_pushed_at_the_users_command_and_its_pull_request_described(tmp_path: Path):
    """The text goes to standard output or a file; an @name in a request mentions no user."""
    repository = make_repository(tmp_path / "shop")
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    database = ("--database", f"sqlite:///{tmp_path / 'fleet.db'}")
    with open_fleet(database[1]) as fleet:
        run = await published(fleet, repository, "Write new.py | <b>now</b> @someone")
        failed = await published(fleet, repository, "Write it", "failed")
        (queued,) = fleet.submit(repository, "Later", RunOptions())
    english = {"DUCKFLOW_LANGUAGE": "en"}
    lonely = duckflow("fleet", "push", run, *database, **english)
    assert (lonely.returncode, "no remote origin" in lonely.stderr) == (2, True)
    git(repository, "remote", "add", "origin", str(tmp_path / "remote.git"))
    done = duckflow("fleet", "push", run, *database, **english)
    assert done.returncode == 0, done.stderr
    assert git(tmp_path / "remote.git", "show", f"duckflow/{run}:new.py") == "print(1)"
    first, *rest = done.stdout.splitlines()
    assert first == "# Write new.py \\| \\<b\\>now\\</b\\> @<!-- -->someone"
    assert "I wrote new.py. @<!-- -->someone \\![](http://example.com/x.png)" in rest
    assert any(line.startswith("| ✅ | ") and " | must | 100 % |" in line for line in rest), rest
    assert "- `new.py`" in rest
    assert "did not end well" not in done.stdout
    text = tmp_path / "text.md"
    other = duckflow("fleet", "push", failed, "-o", text, *database, **english)
    assert (other.returncode, other.stdout) == (0, "")
    assert "did not end well" in text.read_text()
    early = duckflow("fleet", "push", queued, *database, **english)
    assert (early.returncode, "not ended yet" in early.stderr) == (2, True)
    git(repository, "branch", "-D", f"duckflow/{run}")
    gone = duckflow("fleet", "push", run, *database, **english)
    assert (gone.returncode, "no longer in" in gone.stderr) == (2, True)


async def test_M8_a_push_overwrites_nothing(tmp_path: Path):
    repository = make_repository(tmp_path / "shop")
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(repository, "remote", "add", "origin", str(tmp_path / "remote.git"))
    database = ("--database", f"sqlite:///{tmp_path / 'fleet.db'}")
    with open_fleet(database[1]) as fleet:
        run = await published(fleet, repository, "Write new.py")
    make_repository(tmp_path / "stranger")
    git(tmp_path / "stranger", "commit", "--quiet", "--allow-empty", "-m", "theirs")
    git(tmp_path / "stranger", "push", "--quiet", str(tmp_path / "remote.git"), f"main:duckflow/{run}")
    refused = duckflow("fleet", "push", run, *database, DUCKFLOW_LANGUAGE="en")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "git push failed" in refused.stderr
    assert git(tmp_path / "remote.git", "log", "-1", "--format=%s", f"duckflow/{run}") == "theirs"
