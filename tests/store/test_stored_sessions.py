"""The list of sessions: kept up to date with every event, found by id, deleted with all they said (L1)."""

from datetime import UTC, datetime

import pytest

from duckflow.domain.errors import UserError
from duckflow.domain.events import Reply, RequestFinished, SessionStarted, SessionTitled, UserMessage
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.sessions import Sessions, SessionSummary


class Clock:
    """Clock that returns the time set by the test."""

    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(tmp_path, clock):
    opened = SqliteEventLog(tmp_path / "test.db", clock)
    yield opened
    opened.close()


@pytest.fixture
def sessions(log):
    return Sessions(log.database)


def started(session, workspace="/w"):
    return SessionStarted(
        session_id=session, workspace=workspace, model="m", model_reason="k", mode="ask", version="1"
    )


def said(text):
    return UserMessage(request_id="r1", text=text)


def ended(outcome):
    return RequestFinished(request_id="r1", outcome=outcome, exit_code=0)


def test_L1_a_session_is_told_in_one_line(log, clock, sessions):
    log.append("s1", [started("s1")])
    clock.now = datetime(2026, 1, 2, tzinfo=UTC)
    log.append("s1", [said("  直して\n ください "), ended("pending_user"), said("more")])
    assert sessions.listed() == [
        SessionSummary(
            id="s1",
            workspace="/w",
            title="直して ください",
            created=datetime(2026, 1, 1, tzinfo=UTC),
            updated=datetime(2026, 1, 2, tzinfo=UTC),
            events=4,
            outcome="pending_user",
        )
    ]
    log.append("s1", [ended("done")])
    assert (sessions.show("s1").outcome, sessions.show("s1").events) == ("done", 5)


def test_a_long_first_message_is_cut(log, sessions):
    log.append("s1", [started("s1"), said("🦆" * 100)])
    assert sessions.show("s1").title == "🦆" * 59 + "…"


def test_a_session_without_messages_has_no_title_and_no_outcome(log, sessions):
    log.append("s1", [Reply(text="a")])
    assert (sessions.show("s1").title, sessions.show("s1").outcome, sessions.show("s1").workspace) == (
        "",
        None,
        "",
    )


def test_L1_the_session_used_last_comes_first_even_when_the_clock_was_set_back(log, clock, sessions):
    for name in ("s1", "s2", "s3"):
        log.append(name, [started(name)])
    clock.now = datetime(2020, 1, 1, tzinfo=UTC)
    log.append("s1", [said("again")])
    assert [one.id for one in sessions.listed()] == ["s1", "s3", "s2"]


def test_L1_the_last_session_of_a_workspace(log, sessions):
    assert sessions.latest("/w") is None
    log.append("s1", [started("s1", "/w")])
    log.append("s2", [started("s2", "/w")])
    log.append("s3", [started("s3", "/w2")])
    assert sessions.latest("/w").id == "s2"
    assert [one.id for one in sessions.listed("/w")] == ["s2", "s1"]
    assert sessions.listed("/") == []


def test_a_session_is_found_by_the_beginning_of_its_id(log, sessions):
    for name in ("ab12", "ab34", "ab", "c%_d"):
        log.append(name, [started(name)])
    assert sessions.show("ab1").id == "ab12"
    assert sessions.show("ab").id == "ab"
    assert sessions.show("c%").id == "c%_d"
    for wanted, key in {
        "a": "ambiguous_session",
        "x": "no_session",
        "": "no_session",
        "%": "no_session",
    }.items():
        with pytest.raises(UserError) as caught:
            sessions.show(wanted)
        assert (caught.value.key, caught.value.values) == (f"store.{key}", {"session": wanted})


def test_L1_a_deleted_session_is_gone_from_the_file_too(log, sessions, tmp_path):
    for number in range(50):
        log.append("s1", [said(f"secret-word-{number} " * 50)])
    log.append("s2", [said("kept-word")])
    assert sessions.delete("s1").id == "s1"
    assert [one.id for one in sessions.listed()] == ["s2"]
    assert log.load("s1") == []
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret-word" not in held
    assert b"kept-word" in held
    with pytest.raises(UserError, check=lambda error: error.key == "store.no_session"):
        sessions.delete("s1")


def test_whoever_still_writes_to_a_deleted_session_is_told(log, sessions, tmp_path):
    log.append("s1", [started("s1")])
    other = SqliteEventLog(tmp_path / "test.db")
    Sessions(other.database).delete("s1")
    other.close()
    with pytest.raises(UserError, check=lambda error: error.key == "store.session_busy"):
        log.append("s1", [said("x")])
    assert sessions.listed() == []


def test_L1_a_session_that_was_left_before_a_word_was_said_is_not_the_one_to_go_on_with(log, clock, sessions):
    log.append("s1", [started("s1"), said("fix it")])
    clock.now = datetime(2026, 1, 2, tzinfo=UTC)
    log.append("s2", [started("s2")])
    assert sessions.latest("/w").id == "s1"


def test_M7_an_answer_to_a_side_question_does_not_hide_that_a_session_waits(log, sessions):
    log.append("s1", [started("s1"), said("Write it"), ended("awaiting_approval"), SessionTitled(title="It")])
    log.append("s2", [started("s2"), said("Write it")])
    assert sessions.last_events() == {"s1": "request_finished", "s2": "user_message"}
