"""J7: how requests ended is kept beside the events, each request counted once, by its last outcome."""

from pathlib import Path

import pytest

from duckflow.domain.events import RequestFinished, RequestRated, SessionStarted, UserMessage
from duckflow.domain.work.outcomes import RequestStats
from duckflow.store.database.connections import connect
from duckflow.store.database.migrations import MIGRATIONS
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.outcome_stats import request_stats
from duckflow.store.sessions import Sessions


@pytest.fixture
def log(tmp_path: Path):
    log = SqliteEventLog(tmp_path / "duckflow.db")
    yield log
    log.close()


def started(model: str, session: str = "s1") -> SessionStarted:
    return SessionStarted(
        session_id=session, workspace="/w", model=model, model_reason="x", mode="ask", version="1"
    )


def finished(request: str, outcome: str = "done", **fields) -> RequestFinished:
    return RequestFinished(request_id=request, outcome=outcome, exit_code=0, **fields)


def of(log: SqliteEventLog, by: str) -> dict[str, RequestStats]:
    return {one.name: one for one in request_stats(log.database) if one.by == by}


def test_J7_nothing_gives_no_stats(log):
    log.append("s1", [started("m"), UserMessage(request_id="r1", text="x")])
    assert request_stats(log.database) == []


def test_J7_a_request_counts_once_by_its_last_outcome(log):
    log.append("s1", [started("m"), finished("r1", "pending_user"), finished("r1", "awaiting_approval")])
    assert of(log, "all")[""].done == 0
    log.append("s1", [finished("r1", profile="debugging", attempts=2, satisfaction=0.9)])
    assert of(log, "all")[""] == RequestStats(
        by="all",
        requests=1,
        done=1.0,
        accepted=0.0,
        not_judged=0.0,
        done_at_once=0.0,
        attempts=2.0,
        satisfaction=0.9,
    )
    log.append("s1", [finished("r2", "accepted")])
    assert (of(log, "all")[""].done, of(log, "all")[""].accepted) == (0.5, 0.5)


def test_J7_a_permission_is_no_second_request(log):
    log.append("s1", [started("m"), finished("r1", "awaiting_approval"), finished("r1")])
    assert of(log, "all")[""].done_at_once == 1.0


def test_J7_means_leave_out_what_is_not_known(log):
    log.append(
        "s1",
        [
            started("m"),
            finished("r1", attempts=1, satisfaction=1.0),
            finished("r2", attempts=3, satisfaction=0.5),
            finished("r3"),
            finished("r4", "stopped"),
            RequestRated(request_id="r1", rating=8),
            RequestRated(request_id="r1", rating=9),
        ],
    )
    whole = of(log, "all")[""]
    assert (whole.requests, whole.done, whole.attempts, whole.satisfaction) == (4, 0.75, 2.0, 0.75)
    assert whole.rating == 9.0


def test_J7_by_profile_and_by_the_model_that_was_at_work(log):
    log.append("s1", [started("a"), finished("r1", profile="research")])
    log.append("s1", [finished("r2", "stopped", profile="research")])
    log.append("s1", [started("b")])
    log.append("s1", [finished("r3")])
    assert {name: one.requests for name, one in of(log, "profile").items()} == {"research": 2, "": 1}
    assert {name: (one.requests, one.done) for name, one in of(log, "model").items()} == {
        "a": (2, 0.5),
        "b": (1, 1.0),
    }


def test_J7_a_deleted_session_takes_its_outcomes_with_it(log):
    log.append("s1", [started("m"), finished("r1")])
    log.append("s2", [started("m", "s2"), finished("r1")])
    Sessions(log.database).delete("s1")
    assert of(log, "all")[""].requests == 1


def test_J7_a_database_of_before_is_taken_along(tmp_path: Path):
    path = tmp_path / "old.db"
    connect(path, 0, steps=MIGRATIONS[:1]).close()
    log = SqliteEventLog(path)
    log.append("s1", [started("m"), finished("r1")])
    assert of(log, "model")["m"].requests == 1
    log.close()
