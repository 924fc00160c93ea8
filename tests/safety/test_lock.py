"""Two sessions on one workspace: one works, the other learns which session has it (SAFETY 16)."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.domain.errors import UsageError
from duckflow.safety.files.lock import WorkspaceLock
from duckflow.safety.files.workspace import Workspace
from fakes.engine import action, decision, engine

HOLDER = """
import sys, time
from pathlib import Path
from duckflow.safety.files.lock import WorkspaceLock
lock = WorkspaceLock(Path(sys.argv[1]), (int(sys.argv[2]), int(sys.argv[3])))
lock.take("5e551011", "/somewhere")
print("held", flush=True)
time.sleep(60)
"""


def lock_of(folder: Path, locks: Path) -> WorkspaceLock:
    workspace = Workspace(folder)
    made = WorkspaceLock(locks, workspace.identity)
    workspace.close()
    return made


def test_the_second_is_told_who_holds_it_and_a_kill_gives_it_back(folder: Path, tmp_path: Path):
    status = folder.stat()
    identity = map(str, (status.st_dev, status.st_ino))
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "locks"), *identity]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        lock = lock_of(folder, tmp_path / "locks")
        with pytest.raises(UsageError) as error:
            lock.take("mine", str(folder))
        assert error.value.key == "lock.held"
        assert error.value.values["pid"] == str(holder.pid)
        assert error.value.values["session"] == "5e551011"
        assert error.value.values["since"][:2] == "20"
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    lock.take("mine", str(folder))
    lock.release()


def test_it_is_the_folder_that_is_locked_whatever_its_name(folder: Path, tmp_path: Path):
    (tmp_path / "link").symlink_to(folder)
    one, other = lock_of(folder, tmp_path / "locks"), lock_of(tmp_path / "link", tmp_path / "locks")
    one.take("a", str(folder))
    with pytest.raises(UsageError):
        other.take("b", str(folder))
    one.release()
    folder.rename(tmp_path / "renamed")
    again = lock_of(tmp_path / "renamed", tmp_path / "locks")
    again.take("c", str(folder))
    with pytest.raises(UsageError):
        other.take("b", str(folder))
    again.release()


def test_other_folders_are_not_concerned(folder: Path, tmp_path: Path):
    (tmp_path / "other").mkdir()
    locks = [lock_of(one, tmp_path / "locks") for one in (folder, tmp_path / "other")]
    for lock in locks:
        lock.take("a", "x")
    for lock in locks:
        lock.release()


def test_a_lock_with_nothing_in_it_is_still_a_lock(folder: Path, tmp_path: Path):
    lock, other = lock_of(folder, tmp_path / "locks"), lock_of(folder, tmp_path / "locks")
    lock.take("a", "x")
    (file,) = (tmp_path / "locks").iterdir()
    file.write_text("")
    with pytest.raises(UsageError) as error:
        other.take("b", "x")
    assert error.value.values["pid"] == "?"
    lock.release()


async def test_the_second_session_writes_nothing_and_the_first_goes_on(folder: Path):
    async with engine(folder, decision("Hi.")) as duck:
        session_id = duck.state.session_id
        for options in ({}, {"session": session_id}):
            with pytest.raises(UsageError) as error:
                async with engine(folder, decision("Hi."), **options):
                    pass
            assert error.value.key == "lock.held"
            assert error.value.values["session"] == session_id
        assert await duck.app.chat.say("hello") == "done"
    async with engine(folder, decision("Hi.")) as duck:
        assert await duck.app.chat.say("hello") == "done"


def test_M7_anybody_can_see_which_session_has_a_workspace_open(tmp_path: Path):
    lock, other = WorkspaceLock(tmp_path, (1, 2)), WorkspaceLock(tmp_path, (1, 2))
    assert other.holder() is None
    lock.take("s1", "/w")
    assert other.holder() == "s1"
    lock.release()
    assert other.holder() is None
    other.take("s2", "/w")
    assert lock.holder() == "s2"
    other.release()


def test_the_next_session_learns_that_the_last_one_was_killed(folder: Path, tmp_path: Path):
    lock = lock_of(folder, tmp_path / "locks")
    assert lock.take("first", str(folder)) == ""
    text = lock._path.read_text()
    lock.release()
    assert lock.take("second", str(folder)) == ""
    lock.release()
    lock._path.write_text(text)  # as a kill leaves it
    assert lock.take("third", str(folder)) == "first"
    lock.release()


async def test_a_new_session_gives_back_what_was_saved_when_the_last_one_was_killed(folder: Path):
    """SAFETY 12: the user does not have to open the killed session again."""
    (folder / "sub").mkdir()
    place = folder / "sub" / "file"
    place.write_text("old")
    writes = action("write_file", path="sub/file", content="ours")
    async with engine(folder, decision("", writes), decision("Done."), mode="auto") as duck:
        await duck.app.chat.say("go")
        lock, session_id = duck.app._lock._path, duck.state.session_id
    old = hashlib.sha256(b"old").hexdigest()
    saved = place.with_name(f".duckflow-{place.stat().st_ino:016x}-{old[:16]}.tmp")
    saved.write_text("MINE")
    lock.write_text(json.dumps({"pid": 1, "session": session_id, "since": "2026-01-01T00:00:00+00:00"}))
    async with engine(folder, mode="auto"):
        assert [(path.name, path.read_text()) for path in place.parent.iterdir()] == [("file", "MINE")]
