"""M8: priorities, limits that all workers share, filters of the list, and the log."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from duckflow.config.places import config_dir
from duckflow.fleet.database import FleetDatabase, runs
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.runs import FleetLimits, FleetRun, RunFilter, RunOptions
from duckflow.fleet.worker import FleetWorker
from duckflow.fleet.worker_log import log_file, run_log
from fakes.engine import decision, write_script
from fakes.repository import duckflow, make_repository


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    config_dir().mkdir(parents=True)
    (config_dir() / "config.toml").write_text('[shell]\nsandbox = "none"\n')
    with open_fleet(f"sqlite:///{tmp_path / 'fleet.db'}") as opened:
        yield opened


def submit(fleet: Fleet, folder: Path, said: str, priority: int = 0) -> str:
    if not folder.exists():
        make_repository(folder)
    return fleet.submit(folder, said, RunOptions(priority=priority))[0]


def take(fleet: Fleet, lease_s: float = 60) -> str | None:
    run = fleet.runs.take("here", lease_s, "here:1")
    return run.id if run else None


def spend(fleet: Fleet, run: str, usd: float) -> None:
    with fleet.runs.database.begin() as connection:
        connection.execute(sa.update(runs).where(runs.c.id == run).values(cost_usd=usd))


def test_M8_urgent_runs_come_first_and_limits_hold_for_all_workers(fleet: Fleet, tmp_path: Path):
    """In total and per repository; the run of a silent worker still counts."""
    late, soon = submit(fleet, tmp_path / "a", "Later"), submit(fleet, tmp_path / "a", "Soon", 5)
    other, last = submit(fleet, tmp_path / "b", "Other", -1), submit(fleet, tmp_path / "c", "Last", -2)
    fleet.runs.set_limits(FleetLimits(total=2, per_repository=1))
    assert [take(fleet) for _ in range(3)] == [soon, other, None]
    fleet.runs.set_limits(FleetLimits(per_repository=1))
    assert [take(fleet), take(fleet)] == [last, None]
    assert take(fleet, lease_s=0) == soon
    fleet.cancel(soon)
    assert take(fleet) == late


def test_M8_no_run_is_taken_beyond_the_budget(fleet: Fleet, tmp_path: Path):
    first, second = submit(fleet, tmp_path / "a", "One"), submit(fleet, tmp_path / "a", "Two")
    fleet.runs.set_limits(FleetLimits(cost_usd=1.0))
    assert take(fleet) == first
    spend(fleet, first, 1.0)
    assert take(fleet) is None
    fleet.runs.set_limits(FleetLimits(cost_usd=1.5))
    assert take(fleet) == second
    assert fleet.runs.spent_usd() == 1.0


async def test_M8_a_worker_puts_its_run_back_when_the_budget_is_used_up(fleet: Fleet, tmp_path: Path):
    """It finishes the step, begins no other, and ends; another worker continues when the limit is raised."""
    wait, went_on = tmp_path / "wait", tmp_path / "went_on"
    commands = [f"touch {wait}; while [ ! -e {went_on} ]; do sleep 0.05; done", "true"]
    steps = [decision("", {"operation": "shell.run", "args": {"command": one}}) for one in commands]
    script = write_script(tmp_path / "script.jsonl", [*steps, *[decision("Done.")] * 9])
    (run,) = fleet.submit(
        make_repository(tmp_path / "a"), "Do it", RunOptions(model=f"scripted:{script}", max_loops=9)
    )
    worker = FleetWorker(fleet.runs, machine="here", lease_s=1.0, on_lost=lambda: None)
    task = await worker.take()
    assert task is not None
    await task
    fleet.answer(run, "yes")
    fleet.runs.set_limits(FleetLimits(cost_usd=1.0))
    working = asyncio.create_task(
        FleetWorker(fleet.runs, machine="here", lease_s=1.0, on_lost=lambda: None).work(until_idle=True)
    )
    while not wait.exists():
        await asyncio.sleep(0.05)
    (other,) = fleet.submit(tmp_path / "a", "Costly", RunOptions())
    spend(fleet, other, 1.0)
    while "used up" not in "".join(one.text for one in fleet.runs.logged()):
        await asyncio.sleep(0.05)
    went_on.touch()
    await working
    found = fleet.runs.find(run)
    assert (found.state, fleet.runs.find(other).state) == ("queued", "queued")
    said = [one.text for one in fleet.runs.logged(run)]
    assert "puts the run back" in said[-1], said


def test_M8_runs_are_listed_by_state_repository_and_words_with_age_and_cost(fleet: Fleet, tmp_path: Path):
    mend = submit(fleet, tmp_path / "shop", "Mend the price of 100% off")
    test = submit(fleet, tmp_path / "shop", "Add a test for the PRICE")
    other = submit(fleet, tmp_path / "workshop", "Add a page")
    fleet.cancel(other)
    spend(fleet, mend, 0.25)

    def listed(**wanted: str) -> list[str]:
        return [one.id for one in fleet.runs.listed(wanted=RunFilter.model_validate(wanted))]

    assert listed() == [other, test, mend]
    assert listed(state="queued") == [test, mend]
    assert listed(repository="shop") == listed(repository=str(tmp_path / "shop")) == [test, mend]
    assert listed(words="the PRICE") == [test, mend]
    assert (listed(words="100%"), listed(words="1_0%")) == ([mend], [])
    words = ("fleet", "list", "mend", "--database", f"sqlite:///{tmp_path / 'fleet.db'}")
    (line,) = duckflow(*words, DUCKFLOW_LANGUAGE="en").stdout.splitlines()
    assert line.split("  ")[0] == mend
    assert "$0.25  shop  Mend the price" in line
    none = duckflow(*words, "--state", "done", DUCKFLOW_LANGUAGE="en").stdout
    assert none == "No runs match.\n"


async def test_M8_the_log_tells_the_story_of_a_run_and_each_machine_has_it_in_a_file(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The log names the worker, each start and question, and the end; standard error has the same lines."""
    call = {"operation": "shell.run", "args": {"command": "true"}}
    script = write_script(tmp_path / "script.jsonl", [decision("", call), *[decision("Done.")] * 9])
    (run,) = fleet.submit(make_repository(tmp_path / "a"), "Do it", RunOptions(model=f"scripted:{script}"))
    for said in ("yes", ""):
        task = await FleetWorker(fleet.runs, machine="here").take()
        assert task is not None
        await task
        if said:
            fleet.answer(run, said)
    lines = run_log(fleet.runs.logged(run), fleet.runs.events(run), run)
    story = [line.split("  ", 2)[2] for line in lines]
    assert [
        one for one in story if "takes the run" in one or "asks" in one or "begins" in one or "done" in one
    ]
    order = [
        "takes the run (turn 1)",
        "› Do it",
        "asks (",
        "takes the run (turn 2)",
        "begins: shell.run true",
    ]
    places = [next(n for n, one in enumerate(story) if word in one) for word in [*order, "done after"]]
    assert places == sorted(places), story
    written = log_file(run).read_text().splitlines()
    assert sorted(one.split("  ", 2)[2] for one in written) == sorted(story)
    assert capsys.readouterr().err.splitlines() == written
    fleet.clean(days=0)
    assert not log_file(run).exists()
    assert fleet.runs.logged(run) == []


def test_M8_a_database_of_an_earlier_version_gets_the_new_columns(tmp_path: Path):
    """Its runs stay, with values that change nothing."""
    place = tmp_path / "old.db"
    with open_fleet(f"sqlite:///{place}") as fleet:
        run = submit(fleet, tmp_path / "a", "Do it")
    new = ("worker", "priority", "cost_usd", "notice_due", "notice_tries", "notice_told")
    with sqlite3.connect(place) as connection:
        for name in new:
            connection.execute(f"ALTER TABLE fleet_runs DROP COLUMN {name}")
        connection.execute("DROP TABLE fleet_log")
        connection.execute("UPDATE fleet_schema SET version = '2'")
    connection.close()
    database = FleetDatabase(f"sqlite:///{place}")
    database.migrate()
    old = Fleet(database).runs.find(run)
    assert isinstance(old, FleetRun)
    assert (old.worker, old.cost_usd, json.loads(old.options.model_dump_json())["priority"]) == ("", None, 0)
    assert take(Fleet(database)) == run
    database.close()
