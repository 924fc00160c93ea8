"""The file: private, durable, and a clear sentence for everything that can be wrong with it (SAFETY 13)."""

import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from duckflow.domain.errors import UserError
from duckflow.domain.events import Reply
from duckflow.store.database.connections import migrate, translated
from duckflow.store.database.database import Database
from duckflow.store.database.migrations import MIGRATIONS
from duckflow.store.event_log import SqliteEventLog


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "test.db"


def key_of(caught):
    return caught.value.key


def pragma(database, name):
    with database.read() as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_only_the_user_can_read_it_whatever_the_umask(path):
    before = os.umask(0)
    try:
        log = SqliteEventLog(path)
        log.append("s", [Reply(text="a")])
        files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {"test.db", "test.db-wal"} <= files.keys()
    assert set(files.values()) == {0o600}
    log.close()


def test_a_file_that_others_could_read_is_closed_to_them(path):
    Database(path).close()
    path.chmod(0o644)
    Database(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_commit_outlives_a_power_cut_and_readers_do_not_wait(path):
    database = Database(path)
    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2
    assert pragma(database, "foreign_keys") == 1
    assert pragma(database, "busy_timeout") == 10_000
    database.close()


def test_a_clean_close_leaves_one_file_that_needs_no_log(path):
    log = SqliteEventLog(path)
    log.append("s", [Reply(text="a")])
    log.close()
    kept = {"test.db", "test.db-audit", "test.db-audit-key", "test.db-lock"}
    assert {file.name for file in path.parent.iterdir()} == kept


def test_the_steps_are_taken_once_and_remembered(path):
    database = Database(path)
    assert pragma(database, "user_version") == len(MIGRATIONS)
    database.close()
    Database(path).close()


def test_steps_that_fail_leave_the_file_as_it_was(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    broken = ("CREATE TABLE half (a)", "no statement")
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        migrate(connection, tmp_path, (*MIGRATIONS, broken))
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert connection.execute("PRAGMA user_version").fetchone() == (0,)
    connection.close()


def test_a_file_of_a_newer_program_is_left_alone(path):
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(UserError) as caught:
        Database(path)
    assert (key_of(caught), caught.value.values) == ("store.newer", {"path": str(path)})
    assert not list(path.parent.glob("*.damaged*"))


def test_a_full_disk_is_said_and_nothing_is_half_written(path):
    log = SqliteEventLog(path)
    log.append("s", [Reply(text="a")])
    with log.database.write() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(UserError) as caught:
        log.append("s", [Reply(text="b"), Reply(text="c" * 1_000_000)])
    assert key_of(caught) == "store.disk_full"
    assert caught.value.values["path"] == str(path)
    assert [one.event.text for one in log.load("s")] == ["a"]
    assert [one.seq for one in log.append("s", [Reply(text="d")])] == [2]
    log.close()


def test_a_file_held_by_another_program_is_said(path):
    log = SqliteEventLog(path)
    log.append("s", [Reply(text="a")])
    with log.database.read() as connection:
        connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError) as caught:
        log.append("s", [Reply(text="b")])
    assert key_of(caught) == "store.locked"
    assert len(log.load("s")) == 1
    other.execute("ROLLBACK")
    other.close()
    assert [one.seq for one in log.append("s", [Reply(text="b")])] == [2]
    log.close()


def test_a_file_that_someone_else_is_opening_for_ever_is_said(path):
    Database(path).close()
    with (path.parent / "test.db-lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UserError) as caught:
            Database(path, patience_s=0.05)
    assert key_of(caught) == "store.locked"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(UserError) as caught:
        Database(folder / "test.db")
    assert key_of(caught) == "store.read_only"


def test_a_read_only_file_is_said(path):
    Database(path).close()
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    with pytest.raises(UserError) as caught, translated(path):
        connection.execute("DELETE FROM events")
    assert key_of(caught) == "store.read_only"
    connection.close()


def test_a_folder_where_the_file_should_be_is_said(path):
    path.mkdir(parents=True)
    with pytest.raises(UserError) as caught:
        Database(path)
    assert key_of(caught) == "store.read_only"


def test_a_file_where_the_folder_should_be_is_said(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(UserError) as caught:
        Database(tmp_path / "state" / "test.db")
    assert key_of(caught) == "store.read_only"


def test_a_mistake_of_ours_is_not_dressed_up(path):
    database = Database(path)
    with pytest.raises(sqlite3.OperationalError, match="no such table"), database.read() as connection:
        connection.execute("SELECT * FROM no_such")
    assert pragma(database, "user_version") == len(MIGRATIONS)
    database.close()


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_nothing_is_written_to_a_file_nobody_will_read_again(path, change):
    log = SqliteEventLog(path)
    log.append("s", [Reply(text="a")])
    moved = path.rename(path.with_name("elsewhere"))
    if change == "replaced":
        path.write_bytes(moved.read_bytes())
    with pytest.raises(UserError) as caught:
        log.append("s", [Reply(text="b")])
    assert key_of(caught) == "store.moved"
    log.close()


def test_many_threads_may_use_one_log(path):
    log = SqliteEventLog(path)

    def write(session):
        for number in range(20):
            log.append(session, [Reply(text=str(number))])
            log.load("s0")

    threads = [threading.Thread(target=write, args=(f"s{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [one.event.text for one in log.load(f"s{number}")] == [str(count) for count in range(20)]
    log.close()


def test_a_second_connection_of_a_process_leaves_the_first_its_locks(tmp_path):
    """SAFETY 13: without them another process would fold the log away under it, and the file was damaged."""
    path = tmp_path / "db"
    first, second = Database(path), Database(path)
    where = "510, 0x40000002"  # the bytes that SQLite locks
    probe = f"from fcntl import *; lockf(open({str(path)!r}, 'r+b'), LOCK_EX | LOCK_NB, {where})"
    tried = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in tried.stderr
    second.close()
    first.close()
