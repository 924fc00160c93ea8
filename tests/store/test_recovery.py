"""A damaged file is set aside, its readable rows are kept, and the user is informed (SAFETY 13)."""

import random
import sqlite3
import stat

import pytest

from duckflow.domain.errors import UserError
from duckflow.domain.events import Reply, SessionStarted, UserMessage
from duckflow.store.database import database as database_module
from duckflow.store.database.recovery import recover
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.sessions import Sessions

PAGE = 4096


@pytest.fixture
def path(tmp_path):
    return tmp_path / "test.db"


def fill(path, sessions=20, events=30):
    log = SqliteEventLog(path)
    for number in range(sessions):
        name = f"s{number:02}"
        start = SessionStarted(
            session_id=name, workspace="/w", model="m", model_reason="k", mode="ask", version="1"
        )
        message = UserMessage(request_id="r", text=f"message of {name}")
        log.append(name, [start, message, *(Reply(text=f"{name} {count} " * 20) for count in range(events))])
    log.close()


def overwrite(path, start, size, seed=1):
    with path.open("r+b") as file:
        file.seek(start)
        file.write(random.Random(seed).randbytes(size))


def event_page(path, number):
    """Return the offset of the page with events that has this number."""
    content = path.read_bytes()
    pages = [at for at in range(0, len(content), PAGE) if b'"type":"reply"' in content[at : at + PAGE]]
    return pages[number]


def set_aside(path):
    return sorted(file for file in path.parent.iterdir() if ".damaged-" in file.name)


def failures(log):
    """List and read all sessions, and return the keys of the errors that the user sees."""
    told = set()
    try:
        names = [one.id for one in Sessions(log.database).listed()]
    except UserError as error:
        return {error.key}
    for name in names:
        try:
            log.load(name)
        except UserError as error:
            told.add(error.key)
    return told


def check_sound(log):
    with log.database.read() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_sound_file_is_not_touched(path):
    fill(path, sessions=2)
    log = SqliteEventLog(path)
    assert log.database.notices == ()
    assert set_aside(path) == []
    log.close()


@pytest.mark.parametrize("place", [0, 5, 11, 30])
def test_what_can_be_read_around_broken_pages_is_kept(path, place):
    fill(path)
    overwrite(path, event_page(path, place), 2 * PAGE)
    damaged = path.read_bytes()
    log = SqliteEventLog(path)
    (notice,) = log.database.notices
    (aside,) = set_aside(path)
    assert notice.key == "store.recovered"
    assert notice.values["path"] == str(aside)
    kept = {one.id: log.load(one.id) for one in Sessions(log.database).listed()}
    count = sum(len(events) for events in kept.values())
    assert notice.values["events"] == count
    assert 640 * 0.9 <= count < 640
    assert len(kept) >= 19
    assert aside.read_bytes() == damaged
    assert stat.S_IMODE(aside.stat().st_mode) == stat.S_IMODE(path.stat().st_mode) == 0o600
    check_sound(log)
    whole = next(name for name, events in kept.items() if len(events) == 32)
    assert Sessions(log.database).show(whole).title == f"message of {whole}"
    assert Sessions(log.database).show(whole).events == 32
    assert [one.seq for one in log.append(whole, [Reply(text="goes on")])] == [33]
    log.close()
    again = SqliteEventLog(path)
    assert again.database.notices == ()
    assert len(again.load(whole)) == 33
    again.close()


def test_sessions_keep_their_order(path):
    fill(path, sessions=5)
    overwrite(path, path.stat().st_size - PAGE, PAGE)
    log = SqliteEventLog(path)
    names = [one.id for one in Sessions(log.database).listed()]
    assert names == sorted(names, reverse=True)
    assert len(names) >= 4
    log.close()


@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1])
def test_a_file_cut_short_gives_what_is_left(path, keep):
    fill(path)
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * keep) // PAGE * PAGE)
    log = SqliteEventLog(path)
    assert [notice.key for notice in log.database.notices] == ["store.recovered"]
    check_sound(log)
    log.append("new", [Reply(text="a")])
    if keep == 0.9:
        assert log.database.notices[0].values["events"] > 300
    log.close()


@pytest.mark.parametrize(
    "content", [b"this is no database at all\n" * 500, b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_file_that_is_something_else_is_set_aside_and_work_goes_on(path, content):
    path.write_bytes(content)
    log = SqliteEventLog(path)
    assert log.database.notices[0].values["events"] == 0
    assert [aside.read_bytes() for aside in set_aside(path)] == [content]
    log.append("s", [Reply(text="a")])
    log.close()


@pytest.mark.parametrize("seed", [*range(8), 42, 150, 179, 217, 475])
def test_whatever_bytes_are_broken_the_next_start_works_and_nothing_is_lost_silently(path, seed):
    fill(path, sessions=6, events=10)
    chance = random.Random(seed)
    for _ in range(chance.choice([1, 3, 30])):
        overwrite(
            path, chance.randrange(path.stat().st_size), chance.choice([1, 16, 600, 9000]), chance.random()
        )
    log = SqliteEventLog(path)
    failed = failures(log)
    assert failed <= {"store.session_unreadable", "store.damaged"}
    assert not failed or not log.database.notices
    if "store.damaged" in failed:
        log.close()
        log = SqliteEventLog(path)
        assert log.database.notices
        assert failures(log) == set()
    assert bool(set_aside(path)) == bool(log.database.notices)
    log.append("new", [Reply(text="a")])
    assert len(log.load("new")) == 1
    log.close()


def test_an_event_whose_letters_changed_is_left_out_so_that_its_session_can_be_read(path):
    fill(path, sessions=3, events=5)
    raw = path.read_bytes()
    at = raw.index(b'"text":"s01 3 ')
    path.write_bytes(raw[:at] + b"\0" + raw[at + 1 :])
    log = SqliteEventLog(path)
    assert failures(log) == {"store.session_unreadable"}
    log.close()
    assert recover(path).values["events"] == 20
    log = SqliteEventLog(path)
    assert failures(log) == set()
    assert [one.seq for one in log.load("s01")] == [1, 2, 3, 4, 5, 7]
    assert [one.seq for one in log.append("s01", [Reply(text="goes on")])] == [8]
    log.close()


def test_a_byte_that_went_bad_spoils_a_letter_and_no_more(path):
    fill(path, sessions=3, events=5)
    path.write_bytes(path.read_bytes().replace(b"message of s01", b"message \xff\xfe s01"))
    log = SqliteEventLog(path)
    assert Sessions(log.database).show("s01").title == "message \ufffd\ufffd s01"
    assert log.load("s01")[1].event.text == "message \ufffd\ufffd s01"
    log.close()


def test_a_large_file_is_checked_only_after_a_bad_end(path, monkeypatch):
    monkeypatch.setattr(database_module, "CHEAP_CHECK", 0)
    fill(path)
    overwrite(path, event_page(path, 20), PAGE)
    log = SqliteEventLog(path)
    assert log.database.notices == ()
    assert "store.damaged" in failures(log)
    log.close()
    log = SqliteEventLog(path)
    assert [notice.key for notice in log.database.notices] == ["store.recovered"]
    log.close()
    log = SqliteEventLog(path)
    assert log.database.notices == ()
    log.close()


def test_a_large_file_that_was_not_closed_is_checked(path, monkeypatch):
    monkeypatch.setattr(database_module, "CHEAP_CHECK", 0)
    fill(path)
    left = sqlite3.connect(path)
    left.execute("UPDATE sessions SET title = 'x'")
    left.commit()
    overwrite(path, event_page(path, 20), PAGE)
    log = SqliteEventLog(path)
    assert [notice.key for notice in log.database.notices] == ["store.recovered"]
    assert len(set_aside(path)) >= 2
    log.close()
    left.close()


def test_what_was_only_in_the_log_is_recovered_too(path):
    fill(path, sessions=3)
    with sqlite3.connect(path) as left:
        left.execute(
            "UPDATE events SET body = replace(body, 's02', 'changed') WHERE session_id = 's02' AND seq = 2"
        )
    overwrite(path, 6 * PAGE, PAGE)
    log = SqliteEventLog(path)
    assert log.database.notices
    assert log.load("s02")[1].event.text == "message of changed"
    log.close()
    left.close()


def test_left_overs_of_a_recovery_that_was_killed_do_no_harm(path):
    fill(path, sessions=3)
    overwrite(path, 6 * PAGE, PAGE)
    path.with_name("test.db-new").write_bytes(b"half a file")
    path.with_name("test.db-new-wal").write_bytes(b"half a log")
    log = SqliteEventLog(path)
    assert log.database.notices[0].values["events"] > 50
    check_sound(log)
    log.close()
    assert not path.with_name("test.db-new").exists()
