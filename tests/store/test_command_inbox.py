"""M7: commands of other processes wait in the database, are taken once, and leave nothing behind."""

from contextlib import closing
from pathlib import Path

from duckflow.domain.commands import CancelWork, SayMessage
from duckflow.domain.events import SessionStarted
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown, Waiting
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.live_file import LiveView, LiveWriter, read_live

STARTED = SessionStarted(session_id="s", workspace="/w", model="m", model_reason="r", mode="ask", version="0")


def test_M7_a_command_is_taken_once_and_what_it_said_is_gone(tmp_path: Path):
    with (
        closing(SqliteEventLog(tmp_path / "d.db")) as log,
        closing(SqliteEventLog(tmp_path / "d.db")) as owner,
    ):
        log.append("s", [STARTED])
        before = owner.database.version()
        sent, taken = CommandInbox(log.database), CommandInbox(owner.database)
        number = sent.put("s", SayMessage(text="a private wish"))
        assert owner.database.version() != before, "another process sees that something is there"
        assert [one.command for one in taken.waiting("s")] == [SayMessage(text="a private wish")]
        assert sent.sessions() == ["s"]
        assert sent.result(number) is None
        assert taken.settle(number)
        assert not sent.settle(number, "clients.stale"), "the first one counts"
        assert sent.result(number) == ""
        assert not taken.waiting("s")
        with log.database.read() as connection:
            assert "private" not in str(connection.execute("SELECT * FROM inbox").fetchall())


def test_only_so_many_commands_wait_for_one_session(tmp_path: Path):
    with closing(SqliteEventLog(tmp_path / "d.db")) as log:
        log.append("s", [STARTED])
        inbox = CommandInbox(log.database)
        assert inbox.put("s", CancelWork())
        with log.database.write() as connection:
            row = "INSERT INTO inbox (session_id, at, body) VALUES ('s', '', '{}')"
            connection.executemany(row, [()] * 99)
        assert inbox.put("s", CancelWork()) == 0


def test_events_after_one_that_is_known_are_read_without_the_rest(tmp_path: Path):
    with closing(SqliteEventLog(tmp_path / "d.db")) as log:
        log.append("s", [STARTED, STARTED, STARTED])
        assert [one.seq for one in log.load_after("s", 1)] == [2, 3]


def test_M7_pieces_of_a_reply_reach_others_through_a_private_file_that_goes_away(tmp_path: Path):
    path = tmp_path / "live" / "s.live"
    writer = LiveWriter(path)
    assert read_live(path) == LiveView()
    for piece in (ReplyPiece(text="never mind"), ReplyVoid(), ReplyPiece(text="Hel"), ReplyPiece(text="lo")):
        writer(piece)
    writer(OutputPiece(text="x" * 10_000))
    assert path.stat().st_mode & 0o777 == 0o600
    view = read_live(path)
    assert view.reply == "Hello"
    assert len(view.output) == 4_000
    writer.close()
    assert not path.exists()


def test_K4_K6_a_wait_counts_down_for_others_and_thinking_reaches_them(tmp_path: Path):
    path, now = tmp_path / "s.live", 1000.0
    writer = LiveWriter(path, lambda: now)
    writer(Waiting(reason="llm.waits_rate_limited", wait_s=90))
    for passed, left in ((0, 90), (0.5, 90), (60, 30), (90, 0), (99, 0)):
        assert read_live(path, lambda later=now + passed: later).wait_s == left
    writer(Waiting(reason="llm.thought_only"))
    for word in ("Let me ", "think."):
        writer(ThinkingShown(text=word))
    assert read_live(path, lambda: now) == LiveView(thinking="Let me think.")
    writer(ReplyPiece(text="So"))
    assert read_live(path, lambda: now) == LiveView(reply="So", thinking="Let me think.")
    writer(ReplyVoid())
    assert read_live(path, lambda: now) == LiveView()
    writer.close()
