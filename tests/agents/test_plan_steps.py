"""Independent steps of a plan are done by agents at the same time (O3)."""

import re
from pathlib import Path
from typing import Any

from fakes.agents_at_work import Player, agents, casting, duckflow, of_type, writes
from fakes.engine import decision
from fakes.model_server import Fault, ModelServer, Reply
from fakes.plays import asked_for, play

DRAFT = {
    "name": "Three files",
    "risk": "low",
    "success_criteria": ["the files are there"],
    "steps": [
        {"name": "First", "description": "PARTA: write a.txt"},
        {"name": "Second", "description": "PARTB: write b.txt"},
        {"name": "Third", "description": "PARTC: write c.txt", "depends_on": [1, 2]},
    ],
}


def planner(chosen: str) -> Player:
    """A lead that makes the plan, sets agents to the steps at these places, and then says it is done."""
    rest = play(decision("They are there."), PlanDraft=[DRAFT])
    said = iter([decision("A plan.", {"operation": "plan_tool.propose", "args": {"goal": "Three files"}})])
    sent = False

    def answer(body: dict[str, Any]) -> Reply:
        nonlocal sent
        steps = list(dict.fromkeys(re.findall(r"step_[0-9a-f]{8}", str(body))))
        if asked_for(body) != "Decision" or sent:
            return rest(body)
        if not steps:
            return play(next(said))(body)
        sent = True
        tasks = [{"step_id": steps[int(place)]} for place in chosen]
        return play(decision("Agents.", agents("work", tasks=tasks)))(body)

    return answer


def events_of(
    folder: Path, lead: Player, parts: dict[str, Player], mode: str = "auto", answers: int = 0
) -> list[dict[str, Any]]:
    """The events of a request, and of the same after some answers with yes."""
    events: list[dict[str, Any]] = []
    with ModelServer(casting(lead, parts)) as server:
        for given in range(answers + 1):
            again = (
                [f"--resume={events[0]['session_id']}", "--answer=yes"] if given else ["Write three files"]
            )
            events += duckflow(folder, server, *again, "--mode", mode)[1]
    return events


def statuses(events: list[dict[str, Any]]) -> list[str]:
    return [step["status"] for step in of_type(events, "plan_changed")[-1]["plan"]["steps"]]


def test_O3_independent_steps_are_done_at_the_same_time_and_set_completed(folder: Path):
    parts = {"PARTA": writes("a.txt", "a\n"), "PARTB": writes("b.txt", "b\n")}
    events = events_of(folder, planner("01"), parts)
    assert [one["name"] for one in of_type(events, "agent_started")] == ["First", "Second"]
    assert [one["task"] for one in of_type(events, "agent_started")] == ["First", "Second"]
    assert (folder / "a.txt").read_text() + (folder / "b.txt").read_text() == "a\nb\n"
    assert statuses(events) == ["completed", "completed", "pending"]


def test_O3_a_step_whose_agent_failed_stays_open(folder: Path):
    def broken(_: dict[str, Any]) -> Reply:
        return Fault(401, "no")

    events = events_of(folder, planner("01"), {"PARTA": writes("a.txt", "a\n"), "PARTB": broken})
    assert statuses(events) == ["completed", "pending", "pending"]


def test_O3_a_step_that_depends_on_others_does_not_start(folder: Path):
    events = events_of(folder, planner("02"), {})
    assert not of_type(events, "agent_started")
    refused = next(one for one in of_type(events, "action_finished") if one["operation"] == "agent.work")
    assert "can't start before what it depends on is complete" in refused["text"]


def test_O3_steps_stay_open_until_the_user_agrees_to_the_changes(folder: Path):
    parts = {"PARTA": writes("a.txt", "a\n"), "PARTB": writes("b.txt", "b\n")}
    asked = events_of(folder, planner("01"), parts, "ask", answers=1)  # the plan is approved
    assert len(of_type(asked, "agent_ended")) == 2
    assert statuses(asked) == ["pending", "pending", "pending"]
    assert not (folder / "a.txt").exists()


def test_O3_a_yes_to_the_changes_completes_the_steps(folder: Path):
    parts = {"PARTA": writes("a.txt", "a\n"), "PARTB": writes("b.txt", "b\n")}
    done = events_of(folder, planner("01"), parts, "ask", answers=2)
    assert statuses(done) == ["completed", "completed", "pending"]
    assert (folder / "b.txt").read_text() == "b\n"
