"""The work on runs, in this process; one worker after another."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from duckflow.config.places import checkouts_dir, config_dir
from duckflow.domain.events import ActionFinished, ConsultationRequested, Event, Recovered, RequestFinished
from duckflow.fleet.checkout import remove_checkout
from duckflow.fleet.database import runs
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.live_run import LiveRun
from duckflow.fleet.runs import OVER, FleetRun, LostRun, RunOptions, Runs
from duckflow.fleet.worker import FleetWorker
from fakes.engine import action, decision, write_script
from fakes.fleet_drill import Count, answer_to, check_commands
from fakes.repository import git, make_repository


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    config_dir().mkdir(parents=True)
    (config_dir() / "config.toml").write_text('[shell]\nsandbox = "none"\n')
    with open_fleet(f"sqlite:///{tmp_path / 'fleet.db'}") as opened:
        yield opened


def shell(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


def submit(fleet: Fleet, folder: Path, *answers: str, **options: Any) -> str:
    script = write_script(folder.parent / "script.jsonl", answers)
    wanted = RunOptions.model_validate({"model": f"scripted:{script}", **options})
    (run,) = fleet.submit(make_repository(folder), "Do it", wanted)
    return run


def worker(fleet: Fleet, machine: str = "here") -> FleetWorker:
    def lost() -> None:
        raise AssertionError("lost")

    return FleetWorker(fleet.runs, machine=machine, on_lost=lost)


async def work(one: FleetWorker, fleet: Fleet, run: str) -> str:
    """The run's state after a worker has worked on it."""
    task = await one.take()
    assert task is not None
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return fleet.runs.find(run).state


async def abandon(fleet: Fleet, one: FleetWorker) -> None:
    """As if the process were killed: nothing that it works on writes any more; the lease is over."""
    for live, task in [*one._held.values()]:
        live.run = live.run.model_copy(update={"epoch": -1})
        with fleet.runs.database.begin() as connection:
            connection.execute(sa.update(runs).where(runs.c.id == live.run.id).values(updated=0))
        if hasattr(live, "_host"):
            live._host.app._lock.release()
            live._host.app.log._run = live.run
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, AssertionError):
            await task


async def test_a_killed_command_is_asked_about_and_never_run_again(
    fleet: Fleet, folder: Path, tmp_path: Path
):
    """M8, C5: found without a result it is unknown; the run asks, and continues after the answer."""
    ledger = tmp_path / "ledger"
    first, second = f"echo one >> {ledger}; sleep 60", f"echo two >> {ledger}"
    run = submit(fleet, folder, decision("", shell(first)), decision("", shell(second)), decision("Done."))
    killed = worker(fleet)
    assert await work(killed, fleet, run) == "waiting"
    fleet.answer(run, "yes")
    await killed.take()
    while not ledger.exists() or not ledger.read_text():
        await asyncio.sleep(0.05)
    await abandon(fleet, killed)

    assert await work(worker(fleet), fleet, run) == "waiting"
    events = [one.event for one in fleet.runs.events(run)]
    (ended,) = (one for one in events if isinstance(one, ActionFinished))
    (asked,) = (one for one in events if isinstance(one, ConsultationRequested))
    assert (ended.outcome, asked.kind) == ("unknown", "unknown")
    assert "echo one" in str(asked.consultation.findings[0].values)
    fleet.answer(run, "go_on")
    assert await work(worker(fleet), fleet, run) == "waiting"
    fleet.answer(run, "yes")
    assert await work(worker(fleet), fleet, run) == "done"
    assert ledger.read_text() == "one\ntwo\n"


@pytest.mark.long
async def test_what_was_approved_runs_or_is_asked_about_wherever_it_is_cut_off(
    fleet: Fleet, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """M8, C5: killed before each write around an approval: no question is repeated, and no yes is lost."""
    ledger, append = tmp_path / "ledger", Runs.append
    run = submit(fleet, folder, decision("", shell(f"echo one >> {ledger}")), *[decision("Done.")] * 9)
    written = cut = 0

    def cut_off(self: Runs, owned: FleetRun, first: int, added: Sequence[Event]) -> None:
        nonlocal written, cut
        written += owned.epoch != cut
        cut = owned.epoch if written in cuts else cut
        if owned.epoch == cut:  # as if it were dead: nothing more comes from it
            raise LostRun
        append(self, owned, first, added)

    monkeypatch.setattr(Runs, "append", cut_off)
    for cuts in (*((write,) for write in range(7, 16)), (14, 18), (14, 19)):
        ledger.unlink(missing_ok=True)
        (run,) = fleet.submit(folder, "Do it", fleet.runs.find(run).options)
        written, cut, count = 0, 0, Count(runs=1)
        while (state := fleet.runs.find(run).state) not in OVER:
            if state == "waiting":
                fleet.answer(run, answer_to(fleet, fleet.runs.find(run)))
            await work(FleetWorker(fleet.runs, machine="here", lease_s=0, on_lost=lambda: None), fleet, run)
        check_commands(count, fleet.runs.events(run), Counter(ledger.read_text().split()))
        assert (count.wrong, count.approved, state) == ([], 1, "done"), f"cut off before {cuts}"
        assert cut, "it was cut off"


async def test_a_run_goes_on_at_every_step_on_another_machine(
    fleet: Fleet, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """M8: killed between any two steps and taken up elsewhere, it comes to the same end."""
    writes = [decision("", action("write_file", path=f"{name}.txt", content=name)) for name in "ab"]
    run = submit(fleet, folder, *writes, *[decision("Done.")] * 20, mode="edits")
    pause, steps = LiveRun.pause, 0
    reached = asyncio.Event()

    async def stop_there(self: LiveRun) -> None:
        nonlocal steps
        await pause(self)
        steps -= 1
        if steps < 0:
            reached.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(LiveRun, "pause", stop_there)
    for machine in range(20):
        monkeypatch.setenv("DUCKFLOW_FLEET_DIR", str(tmp_path / f"fleet{machine}"))
        monkeypatch.setenv("DUCKFLOW_STATE_DIR", str(tmp_path / f"state{machine}"))
        steps = machine
        reached.clear()
        killed = worker(fleet, f"machine{machine}")
        task = await killed.take()
        assert task is not None
        there = asyncio.ensure_future(reached.wait())
        await asyncio.wait({task, there}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            break
        await abandon(fleet, killed)
    found = fleet.runs.find(run)
    assert (found.state, found.outcome, found.branch) == ("done", "done", f"duckflow/{run}")
    assert machine > 2, "it was interrupted some times"
    assert git(folder, "ls-tree", "--name-only", found.branch).split() == ["README.md", "a.txt", "b.txt"]
    events = [one.event for one in fleet.runs.events(found.id)]
    assert [one.outcome for one in events if isinstance(one, ActionFinished)] == ["ok", "ok"]
    assert not any(isinstance(one, Recovered) for one in events), "nothing was cut off in the middle"
    assert sum(isinstance(one, RequestFinished) for one in events) == 1


async def test_time_is_limited_and_what_failed_can_go_on(fleet: Fleet, folder: Path):
    """M8: a run that takes too long is stopped; a retry continues it."""
    run = submit(fleet, folder, decision("Done."), minutes=1e-9)
    assert await work(worker(fleet), fleet, run) == "failed"
    assert fleet.runs.find(run).outcome == "interrupted"
    other = submit(fleet, folder.parent / "other", '{"for": "Decision", "error": 500}')
    assert await work(worker(fleet), fleet, other) == "failed"
    assert fleet.runs.find(other).outcome == "provider_error"
    write_script(folder.parent / "script.jsonl", [decision("Done.")] * 9)
    fleet.retry(other)
    assert await work(worker(fleet), fleet, other) == "done"


async def test_a_cancelled_run_is_stopped_and_a_broken_one_fails_alone(
    fleet: Fleet, folder: Path, tmp_path: Path
):
    """M8."""
    run = submit(fleet, folder, decision("", shell(f"touch {tmp_path / 'began'}; sleep 60")))
    one = worker(fleet)
    assert await work(one, fleet, run) == "waiting"
    fleet.answer(run, "yes")
    step = await one.take()
    assert step is not None
    while not (tmp_path / "began").exists():
        await asyncio.sleep(0.05)
    fleet.cancel(run)
    await asyncio.to_thread(one.show_life)
    with contextlib.suppress(asyncio.CancelledError):
        await step
    assert fleet.runs.find(run).state == "cancelled"
    assert one._held == {}

    broken = submit(fleet, folder.parent / "other", decision("Done."), model="scripted:/no/such/file")
    assert await work(one, fleet, broken) == "failed"
    report = fleet.runs.find(broken).report
    assert report is not None
    assert "/no/such/file" in report.error
    remove_checkout(broken)
    assert not (checkouts_dir() / broken).exists()
