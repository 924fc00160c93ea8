"""G6: verification finds any change to the chain of entries, even if two processes write at once."""

import json
import sqlite3
import stat
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duckflow.domain.decision import Action
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalAnswered,
    ApprovalRequested,
    Reply,
    SessionStarted,
    UserMessage,
)
from duckflow.domain.questions.approval import Approval
from duckflow.store.audit import log as audit_module
from duckflow.store.audit.entries import GENESIS, hash_of, write_entry
from duckflow.store.audit.log import AuditHead, HeadFile, read_entries
from duckflow.store.audit.seals import key_file
from duckflow.store.audit.verification import AuditFinding, check_audit
from duckflow.store.database.database import Database
from duckflow.store.database.migrations import MIGRATIONS
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.sessions import Sessions

WRITE = Action(operation="file_ops.write_file", args={"path": "a", "content": "words of content"})
QUESTION = Approval(
    approval_id="p1", action=WRITE, intent="i", rationale="r", risk="high", difference="+x", digest="d" * 64
)
STARTED = SessionStarted(session_id="s", workspace="/w", model="m", model_reason="k", mode="ask", version="1")


def ended(outcome="ok"):
    return ActionFinished(
        action_id="a1", operation=WRITE.operation, outcome=outcome, text="text of result", evidence_id="e1"
    )


EVENTS = (
    STARTED,
    UserMessage(request_id="r", text="words of the user"),
    ApprovalRequested(approval=QUESTION),
    ApprovalAnswered(approval_id="p1", yes=True),
    ActionStarted(action_id="a1", action=WRITE),
    ended(),
    Reply(text="done"),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "test.db"


@pytest.fixture
def log(path):
    log = SqliteEventLog(path)
    yield log
    log.close()


def tamper(path, *statements):
    """Change the file as someone would who knows SQLite: the triggers go first."""
    connection = sqlite3.connect(path)
    for statement in ("DROP TRIGGER IF EXISTS audit_no_update", "DROP TRIGGER IF EXISTS audit_no_delete"):
        connection.execute(statement)
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()


def contents(log):
    return [json.loads(entry.body) for entry in read_entries(log.database)]


def test_every_event_leaves_an_entry_without_its_content(log):
    log.append("s", EVENTS)
    entries = contents(log)
    assert [entry["kind"] for entry in entries] == [event.type for event in EVENTS]
    assert [entry["n"] for entry in entries] == list(range(1, 8))
    assert entries[0]["prev"] == GENESIS
    assert all(entry["session"] == "s" and entry["workspace"] == "/w" for entry in entries)
    assert all(len(entry["digest"]) == 32 and entry["at"] for entry in entries)
    told = json.dumps(entries)
    assert "words of" not in told
    assert "text of result" not in told
    asked, answered, _, finished = entries[2:6]
    assert (asked["operation"], asked["risk"], asked["verdict"]) == (WRITE.operation, "high", "asked")
    assert (answered["operation"], answered["risk"], answered["verdict"]) == (
        WRITE.operation, "high", "approved"
    )  # fmt: skip
    assert (finished["operation"], finished["outcome"]) == (WRITE.operation, "ok")
    assert check_audit(log.database) == (7, None)


def test_an_answer_in_another_process_knows_its_question(log, path):
    log.append("s", EVENTS[:3])
    log.close()
    later = SqliteEventLog(path)
    later.load("s")
    later.append("s", [ApprovalAnswered(approval_id="p1", yes=False, reason="no")])
    assert contents(later)[-1]["risk"] == "high"
    assert contents(later)[-1]["verdict"] == "refused"
    later.close()


def test_one_chain_goes_through_all_sessions(log):
    for number in range(5):
        log.append(f"s{number}", [Reply(text="a")])
    assert [entry["session"] for entry in contents(log)] == ["s0", "s1", "s2", "s3", "s4"]
    assert check_audit(log.database) == (5, None)


def test_only_the_user_can_read_it(log, path):
    log.append("s", EVENTS)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("statement", ["UPDATE audit SET body = 'x'", "DELETE FROM audit WHERE number = 1"])
def test_entries_can_not_be_changed_by_mistake(log, statement):
    log.append("s", EVENTS)
    with pytest.raises(sqlite3.IntegrityError, match="only added to"), log.database.write() as connection:
        connection.execute(statement)
    assert check_audit(log.database).finding is None


def test_neither_event_nor_entry_is_stored_without_the_other(log, monkeypatch):
    log.append("s", EVENTS[:1])

    def broken(*_):
        raise sqlite3.OperationalError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(audit_module, "write_entry", broken)
        with pytest.raises(sqlite3.OperationalError):
            log.append("s", EVENTS[1:])
    assert len(log.load("s")) == len(contents(log)) == 1
    log.append("s", EVENTS[1:])
    assert check_audit(log.database) == (7, None)


def test_deleting_a_session_leaves_the_chain_whole_and_says_so(log):
    log.append("s", EVENTS)
    log.append("t", [Reply(text="b")])
    Sessions(log.database).delete("s")
    assert check_audit(log.database) == (9, None)
    last = contents(log)[-1]
    assert (last["kind"], last["session"], last["workspace"]) == ("session_deleted", "s", "/w")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_any_changed_byte_of_any_entry_is_found(path, data):
    path.unlink(missing_ok=True)
    HeadFile(path).path.unlink(missing_ok=True)
    log = SqliteEventLog(path)
    log.append("s", EVENTS)
    number = data.draw(st.integers(1, 7))
    column = data.draw(st.sampled_from(["body", "hash"]))
    entry = list(read_entries(log.database))[number - 1]
    content = bytearray((entry.body if column == "body" else entry.hash).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    tamper(path, (f"UPDATE audit SET {column} = CAST(? AS TEXT) WHERE number = ?", bytes(content), number))
    assert check_audit(log.database).finding == AuditFinding("changed", number)
    log.close()


@pytest.mark.parametrize("number", range(1, 7))
def test_a_removed_entry_is_found(log, path, number):
    log.append("s", EVENTS)
    tamper(path, ("DELETE FROM audit WHERE number = ?", number))
    assert check_audit(log.database).finding == AuditFinding("missing", number)


@pytest.mark.parametrize("left", [0, 1, 6])
def test_a_cut_off_end_is_found_and_stays_visible(log, path, left):
    log.append("s", EVENTS)
    tamper(path, ("DELETE FROM audit WHERE number > ?", left))
    assert check_audit(log.database).finding == AuditFinding("cut", left + 1)
    log.append("t", [Reply(text=str(count)) for count in range(20)])
    assert check_audit(log.database).finding == AuditFinding("missing", left + 1)


def test_an_entry_twice_is_found(log, path):
    log.append("s", EVENTS)
    tamper(path, ("INSERT INTO audit SELECT 8, body, hash, seal FROM audit WHERE number = 7",))
    assert check_audit(log.database).finding == AuditFinding("moved", 8)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(pair=st.lists(st.integers(1, 7), min_size=2, max_size=2, unique=True))
def test_swapped_entries_are_found(path, pair):
    path.unlink(missing_ok=True)
    HeadFile(path).path.unlink(missing_ok=True)
    log = SqliteEventLog(path)
    log.append("s", EVENTS)
    one, other = pair
    move = "UPDATE audit SET number = ? WHERE number = ?"
    tamper(path, (move, 99, one), (move, one, other), (move, other, 99))
    assert check_audit(log.database).finding == AuditFinding("moved", min(pair))
    log.close()


def test_a_chain_written_anew_is_found(log, path):
    """An attacker who recomputes the hashes and rewrites the file next to the database lacks the key."""
    log.append("s", EVENTS)
    previous, statements = GENESIS, []
    for entry in read_entries(log.database):
        content = json.loads(entry.body)
        number = content.pop("n")
        content |= {"outcome": "refused"} if number == 6 else {}
        content.pop("prev")
        new = write_entry(number, previous, content)
        previous = new.hash
        statements.append(
            ("UPDATE audit SET body = ?, hash = ? WHERE number = ?", new.body, new.hash, number)
        )
    tamper(path, *statements)
    HeadFile(path).path.write_text(f"{7:020d} {previous}\n")
    assert check_audit(log.database).finding == AuditFinding("forged", 6)


def test_a_file_beside_it_that_was_not_written_with_the_key_is_not_believed(log, path):
    log.append("s", EVENTS)
    tamper(path, ("DELETE FROM audit WHERE number > 5",), ("DELETE FROM events WHERE seq > 5",))
    last = list(read_entries(log.database))[-1]
    HeadFile(path).path.write_text(f"{5:020d} {last.hash} {last.seal}\n")
    assert check_audit(log.database).finding == AuditFinding("no_head", 5)


def test_the_key_is_the_users_alone_and_its_loss_is_told(log, path):
    log.append("s", EVENTS)
    key = key_file(path)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.unlink()
    assert check_audit(log.database).finding == AuditFinding("no_key", 1)
    log.append("s", [Reply(text="later")])
    assert check_audit(log.database).finding == AuditFinding("no_key", 1), "a new key does not cover it up"


def test_an_event_without_an_entry_is_found(log, path):
    log.append("s", EVENTS)
    tamper(
        path,
        (
            "INSERT INTO events (session_id, seq, at, type, body) "
            "SELECT session_id, 8, at, type, body FROM events WHERE seq = 7",
        ),
    )
    assert check_audit(log.database).finding == AuditFinding("event_unentered", 7)


def test_entries_of_an_older_file_stay_whole_and_new_ones_are_sealed(path):
    path.parent.mkdir(parents=True)
    old = Database(path, steps=MIGRATIONS[:4])
    fields = {"session": "s", "kind": "old"}
    first = write_entry(1, GENESIS, fields)
    second = write_entry(2, first.hash, fields)
    with old.write() as connection:
        for entry in (first, second):
            row = "INSERT INTO audit (number, body, hash) VALUES (?, ?, ?)"
            connection.execute(row, (entry.number, entry.body, entry.hash))
    old.close()
    HeadFile(path).advance(AuditHead(2, second.hash))
    log = SqliteEventLog(path)
    assert check_audit(log.database) == (2, None)
    log.append("s", EVENTS)
    assert check_audit(log.database) == (9, None)
    assert [bool(entry.seal) for entry in read_entries(log.database)] == [False, False, *[True] * 7]
    tamper(path, ("UPDATE audit SET seal = '' WHERE number > 2",))
    assert check_audit(log.database).finding == AuditFinding("forged", 3)
    log.close()


def test_without_the_file_beside_it_nobody_can_say_that_the_end_is_there(log, path):
    log.append("s", EVENTS)
    HeadFile(path).path.unlink()
    assert check_audit(log.database).finding == AuditFinding("no_head", 7)
    log.append("t", [Reply(text="b")])
    assert check_audit(log.database).finding == AuditFinding("missing", 8)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"9 short"])
def test_a_file_beside_it_that_says_nothing_is_as_good_as_none(log, path, content):
    log.append("s", EVENTS)
    HeadFile(path).path.write_bytes(content)
    assert check_audit(log.database).finding == AuditFinding("no_head", 7)


def test_a_file_that_is_behind_is_no_finding(log, path):
    """A crash between the commit and its writing leaves it so."""
    log.append("s", EVENTS[:3])
    behind = HeadFile(path).path.read_bytes()
    log.append("s", EVENTS[3:])
    HeadFile(path).path.write_bytes(behind)
    assert check_audit(log.database) == (7, None)
    log.append("s", [Reply(text="more")])
    assert HeadFile(path).read().number == 8
    assert check_audit(log.database) == (8, None)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            "UPDATE events SET body = replace(body, 'user', 'dude') WHERE seq = 2",
            AuditFinding("event_changed", 2),
        ),
        ("DELETE FROM events WHERE seq = 6", AuditFinding("event_missing", 6)),
    ],
)
def test_a_changed_or_removed_event_is_found_too(log, path, statement, fault):
    log.append("s", EVENTS)
    tamper(path, (statement,))
    assert check_audit(log.database).finding == fault


def test_hashes_are_plain_sha256_of_what_is_exported(log):
    log.append("s", EVENTS)
    entries = list(read_entries(log.database))
    assert all(hash_of(entry.body) == entry.hash for entry in entries)
    again = [json.dumps(json.loads(entry.body), sort_keys=True, separators=(",", ":")) for entry in entries]
    assert again == [entry.body for entry in entries]


def test_checking_reads_one_entry_at_a_time(log, monkeypatch):
    """Constant memory: no more than one row is fetched before the one before it was looked at."""
    log.append("s", [Reply(text=str(number)) for number in range(300)])
    seen = []

    def watched(connection):
        for entry in audit_module.stored_entries(connection):
            seen.append(entry.number)
            yield entry
            assert len(seen) == entry.number

    monkeypatch.setattr("duckflow.store.audit.verification.stored_entries", watched)
    assert check_audit(log.database) == (300, None)


def test_entries_survive_a_damaged_file(log, path):
    for number in range(20):
        log.append(f"s{number}", [STARTED, *(Reply(text="x" * 300) for _ in range(10))])
    log.close()
    content = path.read_bytes()
    page = next(at for at in range(0, len(content), 4096) if b"xxxxxxxx" in content[at : at + 4096])
    path.write_bytes(content[:page] + b"\xff" * 4096 + content[page + 4096 :])
    mended = SqliteEventLog(path)
    assert [notice.key for notice in mended.database.notices] == ["store.recovered"]
    assert len(contents(mended)) == 220
    assert check_audit(mended.database).finding.fault == "event_missing"
    mended.close()


WRITER = """
import sys
from pathlib import Path
from duckflow.domain.events import Reply
from duckflow.store.database.database import Database
from duckflow.store.database.migrations import MIGRATIONS
from duckflow.store.event_log import SqliteEventLog
log = SqliteEventLog(Path(sys.argv[1]))
for number in range(60):
    log.append(sys.argv[2], [Reply(text=str(number))] * (number % 3 + 1))
log.close()
"""


def test_two_processes_keep_one_chain(log, path):
    log.append("s", EVENTS)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert check_audit(log.database) == (7 + 240, None)
    sessions = [entry["session"] for entry in contents(log)]
    assert sessions.count("a") == sessions.count("b") == 120
