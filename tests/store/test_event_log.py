"""The event log loads appended events in order and once, even if other processes write (E3, L1)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from duckflow.domain.decision import Action
from duckflow.domain.errors import UserError
from duckflow.domain.events import ActionStarted, ErrorReported, Reply, UsageReported, UserMessage
from duckflow.domain.model import Usage
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState
from duckflow.store.event_log import SqliteEventLog
from fakes.events import events


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "test.db"


@pytest.fixture
def log(path):
    opened = SqliteEventLog(path)
    yield opened
    opened.close()


def state_of(recorded):
    state = AgentState()
    for one in recorded:
        state = apply(state, one)
    return state


class TestAnyEvents:
    """One file for all examples, a session for each."""

    sessions = 0

    @settings(
        max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )
    @given(batches=st.lists(st.lists(events, max_size=4), max_size=4))
    def test_E3_the_state_after_reloading_is_the_state_before(self, path, log, batches):
        TestAnyEvents.sessions += 1
        session = f"s{TestAnyEvents.sessions}"
        recorded = [one for batch in batches for one in log.append(session, batch)]
        given_events = [event for batch in batches for event in batch]
        assert [one.event for one in recorded] == given_events
        assert [one.seq for one in recorded] == list(range(1, len(recorded) + 1))
        again = SqliteEventLog(path)
        try:
            loaded = again.load(session)
        finally:
            again.close()
        assert list(loaded) == recorded
        assert state_of(loaded) == state_of(recorded)


def test_an_unknown_session_has_no_events(log):
    assert log.load("nothing") == []


def test_appending_goes_on_where_the_loaded_session_ended(path, log):
    log.append("s", [Reply(text="a"), Reply(text="b")])
    log.close()
    again = SqliteEventLog(path)
    assert len(again.load("s")) == 2
    assert [one.seq for one in again.append("s", [Reply(text="c")])] == [3]
    again.close()


def test_nothing_appended_is_nothing_stored(log):
    assert log.append("s", []) == ()
    assert log.load("s") == []


def test_times_are_kept_in_utc_whatever_the_clock_says(path):
    times = iter(
        [
            datetime(2026, 1, 1, 9, 30, 0, 5, tzinfo=timezone(timedelta(hours=9))),
            datetime(2025, 1, 1, tzinfo=UTC),
        ]
    )
    log = SqliteEventLog(path, clock=lambda: next(times))
    log.append("s", [Reply(text="a")])
    log.append("s", [Reply(text="clock set back")])
    assert [one.at for one in log.load("s")] == [
        datetime(2026, 1, 1, 0, 30, 0, 5, tzinfo=UTC),
        datetime(2025, 1, 1, tzinfo=UTC),
    ]
    assert all(one.at.utcoffset() == timedelta(0) for one in log.load("s"))
    log.close()


def test_a_second_writer_of_a_session_is_told_and_writes_nothing(path, log):
    log.append("s", [Reply(text="a")])
    other = SqliteEventLog(path)
    other.load("s")
    other.append("s", [Reply(text="b")])
    with pytest.raises(UserError) as caught:
        log.append("s", [Reply(text="c"), Reply(text="d")])
    assert (caught.value.key, caught.value.values) == ("store.session_busy", {"session": "s"})
    assert [one.event.text for one in other.load("s")] == ["a", "b"]
    other.append("s", [Reply(text="e")])
    log.append("other", [Reply(text="f")])
    other.close()


def test_a_session_that_exists_is_loaded_before_it_is_appended_to(path, log):
    log.append("s", [Reply(text="a")])
    other = SqliteEventLog(path)
    with pytest.raises(UserError, check=lambda error: error.key == "store.session_busy"):
        other.append("s", [Reply(text="b")])
    other.close()


def test_all_events_of_one_append_are_stored_or_none(log):
    log.append("s", [Reply(text="a")])
    with pytest.raises(ValidationError):
        log.append("s", [Reply(text="b"), Reply.model_construct(type="no such event", text="c")])
    assert [one.event.text for one in log.load("s")] == ["a"]
    assert [one.seq for one in log.append("s", [Reply(text="c")])] == [2]


def test_a_failure_inside_the_transaction_leaves_nothing_behind(log):
    log.append("s", [Reply(text="a")])
    with log.database.write() as connection:
        connection.execute(
            """CREATE TRIGGER full BEFORE INSERT ON events WHEN NEW.body LIKE '%third%'
               BEGIN SELECT RAISE(ABORT, 'stop'); END"""
        )
    with pytest.raises(Exception, match="stop"):
        log.append("s", [Reply(text="second"), Reply(text="third")])
    assert [one.event.text for one in log.load("s")] == ["a"]
    assert [one.seq for one in log.append("s", [Reply(text="c")])] == [2]


def test_what_comes_back_is_what_will_be_loaded_even_where_a_value_can_not_be_kept(log):
    odd = [
        Reply(text="half \ud83e a duck"),
        ActionStarted(action_id="a", action=Action(operation="x", args={"p\udcff": ["\udcff"]})),
        ErrorReported(key="k", values={"number": float("nan")}),
        UsageReported(tier="fast", model="m", output="o", tokens=Usage(), cost_usd=float("inf")),
    ]
    recorded = log.append("s", odd)
    assert recorded[0].event.text == "half ? a duck"
    assert list(log.load("s")) == list(recorded)


@pytest.mark.parametrize(
    "body",
    [
        '{"type": "from_the_future", "text": "?"}',
        '{"type": "reply", "text": "a", "mood": "new field"}',
        '{"type": "reply"',
        "",
    ],
)
def test_an_event_of_a_newer_version_makes_only_its_own_session_unreadable(log, body):
    log.append("old", [Reply(text="a")])
    log.append("new", [Reply(text="a")])
    with log.database.write() as connection:
        connection.execute(
            "INSERT INTO events (session_id, seq, at, type, body) VALUES ('new', 2, '', 'what', ?)", (body,)
        )
    with pytest.raises(UserError) as caught:
        log.load("new")
    assert caught.value.key == "store.session_unreadable"
    assert caught.value.values == {"session": "new", "seq": 2, "type": "what"}
    assert len(log.load("old")) == 1


def test_large_events_are_kept_whole(log):
    text = "鴨🦆" * 2_000_000
    log.append("s", [UserMessage(request_id="r", text=text)])
    assert log.load("s")[0].event.text == text
