"""M7, M8: the fleet on the page: all runs and their questions, which are answered there."""

import asyncio
import sys
from contextlib import closing
from pathlib import Path

import pytest

from duckflow.api import find_session
from duckflow.app.places import open_log
from duckflow.cli.web.fleet_sessions import FleetSessions
from duckflow.cli.web.local_sessions import LocalSessions
from duckflow.domain.commands import AnswerShown, CancelWork, SayMessage, hash_of
from duckflow.domain.decision import Action
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ApprovalRequested, RequestFinished, SessionStarted, UserMessage
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.fleet.fleet import open_fleet
from duckflow.fleet.questions import question_key
from duckflow.fleet.runs import RunOptions
from fakes.engine import write_script
from fakes.repository import make_repository
from fakes.rows import Failures
from fakes.web_server import web_server

EVIL = "<img src=x onerror=alert(1)>"
ASKED = Approval(
    approval_id="p1",
    action=Action(operation="file_ops.write_file", args={"path": f"{EVIL}.md", "content": "x\n"}),
    intent=EVIL,
    rationale="",
    difference="--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n",
    digest="d",
)


def waiting_runs(folder: Path) -> tuple[str, str]:
    """Two runs that wait: one for an approval, one for words."""
    with open_fleet() as fleet:
        asking, talking = fleet.submit(folder, f"Write it {EVIL}", RunOptions(), 2)
        for run, asked in ((asking, True), (talking, False)):
            mine = fleet.runs.take("here", lease_s=60)
            assert mine is not None
            assert mine.id == run
            outcome = "awaiting_approval" if asked else "pending_user"
            said = UserMessage(request_id="r_1", text="Write it")
            ended = RequestFinished(request_id="r_1", outcome=outcome, exit_code=3)
            question = [ApprovalRequested(approval=ASKED)] if asked else []
            fleet.runs.append(mine, 1, [said, *question, ended])
            key = question_key(fleet.state(mine), fleet.runs.events(mine.id))
            fleet.runs.note(mine, {"state": "waiting", "question": key})
    return asking, talking


def test_M8_the_fleet_is_watched_answered_cancelled_and_retried_on_the_page(folder: Path, tmp_path: Path):
    make_repository(folder)
    script = write_script(tmp_path / "s.jsonl", ())
    with web_server(folder, script) as client:
        client.enter()
        first = client.follow("fleet", lambda event, found: event == "fleet")[-1][1]
        assert first is None, "nobody has used the fleet here"
        other = make_repository(tmp_path / "other")
        asking, talking = waiting_runs(other)
        shown = client.follow("fleet", lambda event, found: event == "fleet" and found)[-1][1]
        assert shown["counts"] == {"waiting": 2}
        assert {one["id"] for one in shown["runs"]} == {asking, talking}
        listed = next(one for one in shown["runs"] if one["id"] == asking)
        assert EVIL in listed["request"]
        assert EVIL in listed["asks"], "as it is: the page makes text of it"
        assert "file_ops" not in listed["asks"], "the question has it in words"
        elsewhere = client.follow("", lambda event, found: event == "fleet" and found)[-1][1]
        assert (elsewhere["runs"], elsewhere["counts"]) == ([], {"waiting": 2})

        run = f"run-{asking}"
        asked = client.question(run)
        assert (asked["kind"], asked["question_hash"]) == ("approval", hash_of(ASKED))
        assert ["changed", 0, None, 1, "x"] in asked["difference"]
        yes = {"kind": "answer", "question_hash": asked["question_hash"], "answer": {"yes": True}}
        refused = Failures()
        for name, command in (
            ("another hash", {**yes, "question_hash": "0" * 64}),
            ("the fleet's own hash", {**yes, "question_hash": listed["question"]["question_hash"]}),
            ("a text in its place", {**yes, "answer": {"yes": True, "edited": "rm"}}),
            ("undo", {"kind": "undo"}),
        ):
            with refused.of(name):
                assert client.send(run, **command).status_code == 409
        assert client.send(run, **yes).json() == {"waiting": False}
        with refused.of("the same once more"):
            assert client.send(run, **yes).status_code == 409
        gone = client.follow(run, lambda event, found: event == "fleet" and found["run"]["state"] == "queued")
        assert not [found for event, found in gone if event == "question" and found], "answered: not asked"

        words = client.question(f"run-{talking}")
        said = {
            "kind": "choose",
            "question_hash": words["question_hash"],
            "way": {"text": "Take the second one"},
        }
        with refused.of("no words"):
            assert client.send(f"run-{talking}", **{**said, "way": {"text": " "}}).status_code == 409
        assert client.send(f"run-{talking}", **said).status_code == 200
        assert client.send(run, kind="cancel").status_code == 200
        with refused.of("cancelled twice"):
            assert client.send(run, kind="cancel").status_code == 409
        assert client.post(f"api/sessions/{run}/retry", {}).status_code == 200
        with refused.of("retried twice"):
            assert client.post(f"api/sessions/{run}/retry", {}).status_code == 409
        patch = client.get(f"api/sessions/{run}/patch")
        assert (patch.status_code, patch.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert patch.headers["content-disposition"].startswith("attachment;")

        wish = {"folder": str(other), "text": "And this", "mode": "edits", "where": "fleet"}
        new = client.post("api/sessions", wish).json()["session"]
        with refused.of("a folder nobody named"):
            assert client.post("api/sessions", {**wish, "folder": str(tmp_path)}).status_code == 409
        refused.report()
    with open_fleet() as fleet:
        answers = {
            run: fleet.runs.answer(
                run, question_key(fleet.state(fleet.runs.find(run)), fleet.runs.events(run))
            )
            for run in (asking, talking)
        }
        queued = fleet.runs.find(new.removeprefix("run-"))
    allowed = AnswerShown(question_hash=hash_of(ASKED), answer=AnswerApproval(yes=True))
    assert answers == {asking: allowed, talking: SayMessage(text="Take the second one")}
    assert (queued.request, queued.options.mode, queued.state) == ("And this", "edits", "queued")


def test_M8_a_fleet_that_cannot_be_had_is_told_or_not_there(monkeypatch: pytest.MonkeyPatch):
    broken = FleetSessions("mysql://nowhere/x").look("run-1")
    assert broken is not None
    assert ("sqlite:///" in broken["error"], broken["run"]) == (True, None)
    monkeypatch.setitem(sys.modules, "duckflow.fleet.fleet", None)
    assert FleetSessions("sqlite:///x.db").look("fleet") is None, "the extra is not installed"


def test_M8_a_run_of_the_fleet_goes_on_only_in_the_fleet(folder: Path, tmp_path: Path):
    """The fleet has its own events: a run answered in both places would do its work twice."""
    run, copy = "1a2b3c4d", tmp_path / "fleet" / "1a2b3c4d" / "shop"
    began = SessionStarted(
        session_id=run, workspace=str(copy), model="m", model_reason="", mode="ask", version="0"
    )
    with closing(open_log()) as log:
        log.append(run, [began])
    sessions = LocalSessions(folder, {})
    assert (sessions.sessions(), sessions.folders()) == ([], [str(folder)])
    with pytest.raises(UsageError) as refused:
        asyncio.run(sessions.send(run, CancelWork()))
    with pytest.raises(UsageError) as resumed:
        find_session("1a2b")
    assert refused.value.key == resumed.value.key == "fleet.is_a_run"
    asyncio.run(sessions.aclose())
