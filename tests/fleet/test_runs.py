"""The parts of the fleet, without workers: queue, answers, ownership, copies."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from duckflow.domain.commands import SayMessage
from duckflow.domain.decision import Action
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ConsultationRequested,
    Event,
    RequestFinished,
    StoredEvent,
    UserMessage,
)
from duckflow.domain.questions.consultation import Consultation
from duckflow.fleet.checkout import Checkout, remove_checkout
from duckflow.fleet.database import FleetDatabase, address
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.questions import unknown_actions
from duckflow.fleet.runs import FleetRun, LostRun, RunOptions
from fakes.repository import git, make_repository


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with open_fleet(f"sqlite:///{tmp_path / 'fleet.db'}") as opened:
        yield opened


def submitted(fleet: Fleet, folder: Path) -> FleetRun:
    (run,) = fleet.submit(make_repository(folder), "Do it", RunOptions())
    return fleet.runs.find(run)


def taken(fleet: Fleet, run: FleetRun) -> FleetRun:
    got = fleet.runs.take("here", lease_s=0)
    assert got is not None
    assert got.id == run.id
    return got


SAID = UserMessage(request_id="r_1", text="Do it")
ASKS = RequestFinished(request_id="r_1", outcome="pending_user", exit_code=3)


def test_who_lost_a_run_can_write_nothing_more(fleet: Fleet, folder: Path):
    """M8: a worker that was wrongly considered dead does no harm."""
    run = submitted(fleet, folder)
    first = taken(fleet, run)
    fleet.runs.append(first, 1, [SAID])
    second = taken(fleet, run)
    for write in (
        lambda: fleet.runs.append(first, 2, [SAID]),
        lambda: fleet.runs.note(first, {"state": "done"}),
    ):
        with pytest.raises(LostRun):
            write()
    fleet.runs.append(second, 2, [ASKS])
    assert [one.seq for one in fleet.runs.events(run.id)] == [1, 2]
    assert fleet.runs.find(run.id).state == "working"


def test_an_answer_is_given_once_and_only_to_what_was_shown(fleet: Fleet, folder: Path):
    """M8: of two answers one counts; a stale one is refused with a sentence."""
    run = submitted(fleet, folder)
    with pytest.raises(UsageError) as early:
        fleet.answer(run.id, "yes")
    mine = taken(fleet, run)
    fleet.runs.append(mine, 1, [SAID, ASKS])
    fleet.runs.note(mine, {"state": "waiting", "question": "abc"})
    with pytest.raises(UsageError):
        fleet.answer(run.id, "yes", "another")
    with pytest.raises(UsageError):
        fleet.answer(run.id, " ", "abc")
    fleet.answer(run.id, "yes", "abc")
    with pytest.raises(UsageError) as late:
        fleet.answer(run.id, "no", "abc")
    assert early.value.key == late.value.key == "fleet.not_asked"
    assert fleet.runs.answer(run.id, "abc") == SayMessage(text="yes")
    assert (fleet.runs.find(run.id).state, fleet.runs.find(run.id).leg) == ("queued", 2)


def test_cancelled_and_failed_runs_can_be_retried_and_forgotten(fleet: Fleet, folder: Path):
    """M8."""
    run = submitted(fleet, folder)
    mine = taken(fleet, run)
    fleet.cancel(run.id)
    with pytest.raises(LostRun):
        fleet.runs.append(mine, 1, [SAID])
    with pytest.raises(UsageError):
        fleet.cancel(run.id)
    fleet.retry(run.id)
    with pytest.raises(UsageError):
        fleet.retry(run.id)
    fleet.cancel(run.id)
    assert fleet.clean(days=1) == []
    assert fleet.clean(days=0) == [run.id]
    assert fleet.runs.listed() == []


def test_a_copy_is_made_again_elsewhere_and_ends_as_a_branch(fleet: Fleet, folder: Path):
    """M8: the repository gets only the branch; nothing is pushed."""
    run = submitted(fleet, folder)
    copy = Checkout(run)
    copy.prepare(b"", moved=False)
    assert copy.publish() == ""
    (copy.folder / "new.py").write_text("print(1)\n")
    (copy.folder / "README.md").unlink()
    patch = copy.changes()
    remove_checkout(run.id)
    copy.prepare(patch, moved=True)
    assert (copy.folder / "new.py").read_text() == "print(1)\n"
    assert not (copy.folder / "README.md").exists()
    assert git(copy.folder, "remote") == ""
    branch = copy.publish()
    assert git(folder, "ls-tree", "--name-only", branch) == "new.py"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--format=%s", "-1", branch) == "Do it"


def test_SAFETY_17_no_program_that_a_repository_names_runs_for_a_copy(fleet: Fleet, folder: Path, tmp_path):
    evil, template = tmp_path / "evil", tmp_path / "template"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    evil.chmod(0o755)
    run = submitted(fleet, folder)
    for name in (
        *("filter.x.clean", "filter.x.smudge", "filter.x.process", "core.fsmonitor", "core.sshCommand"),
        *("diff.external", "diff.x.textconv", "merge.x.driver", "core.alternateRefsCommand", "core.pager"),
        *("uploadpack.packObjectsHook", "gpg.program", "core.editor"),
    ):
        git(folder, "config", name, str(evil))
    for name in ("filter.x.required", "commit.gpgSign"):
        git(folder, "config", name, "true")
    git(folder, "config", "init.templateDir", str(template))
    for hooks in (folder / ".git/hooks", template / "hooks"):
        for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
            (hooks / name).parent.mkdir(parents=True, exist_ok=True)
            (hooks / name).symlink_to(evil)
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* filter=x diff=x merge=x\n")
    copy = Checkout(run)
    copy.prepare(b"", moved=False)
    (copy.folder / ".gitattributes").write_text("* filter=x diff=x\n")
    git(copy.folder, "config", "filter.x.clean", str(evil))
    patch = copy.changes()
    copy.prepare(patch, moved=True)
    assert copy.publish()
    assert not (tmp_path / "ran").exists()


def test_what_is_unknown_is_asked_about_once():
    """C5, M8."""
    action = Action(operation="shell.run", args={"command": "make it"})
    ended = ActionFinished(
        action_id="a1", operation="shell.run", outcome="unknown", text="", evidence_id="e1"
    )
    asked = ConsultationRequested(
        kind="unknown",
        consultation=Consultation(
            consultation_id="c3", kind="unknown", situation="consultation.unknown", choices=("go_on", "stop")
        ),
    )

    def of(*events: Event) -> list[str]:
        now = datetime.now(UTC)
        return unknown_actions([StoredEvent(seq=n, at=now, event=one) for n, one in enumerate(events, 1)])

    started = ActionStarted(action_id="a1", action=action, effect="execute")
    assert of(started, ended) == ["shell.run make it"]
    assert of(started, ended, asked) == []


def test_each_run_has_one_worker_until_that_is_silent(fleet: Fleet, folder: Path):
    """M8: the oldest run first; the run of a silent worker is taken again, with its former machine named."""
    first, second = fleet.submit(make_repository(folder), "Do it", RunOptions(), 2)
    taken = [fleet.runs.take(machine, lease_s=60) for machine in ("a", "b", "c")]
    assert [one and one.id for one in taken] == [first, second, None]
    again = fleet.runs.take("d", lease_s=0)
    assert again is not None
    assert (again.id, again.machine) == (first, "a")
    assert taken[0] is not None
    assert not fleet.runs.extend(taken[0]), "it is lost"
    assert fleet.runs.extend(again)


def test_the_database_is_checked_before_it_is_used(tmp_path: Path):
    """M8: a database that can't be used is an error in one sentence."""
    with pytest.raises(UsageError):
        address("mysql://somewhere/db")
    with pytest.raises(UserError) as gone, FleetDatabase(f"sqlite:///{tmp_path}/no/folder.db").begin() as one:
        one.exec_driver_sql("SELECT 1")
    assert gone.value.key == "fleet.no_database"
