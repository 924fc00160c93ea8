"""Forty decisions over several requests, over real HTTP; the event log tells what happened."""

from pathlib import Path

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    DecisionMade,
    RequestFinished,
    Transition,
    TransitionRefused,
)
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.transitions import Step
from duckflow.loops.session import Session
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play


def write(path: str, content: str, **fields: object) -> str:
    return decision("", action("write_file", path=path, content=content), **fields)


def script() -> list[str]:
    """Three requests: one that just works, one with trouble, one refused and planned again."""
    first = [
        decision("I look around.", action("list_files"), step="PLANNING"),
        *(write(f"part{n}.py", f"value = {n}\n", step="EXECUTION") for n in range(10)),
        decision("I check it.", action("read_file", path="part3.py"), step="REVIEW"),
        decision("Ten parts are there."),
    ]
    second = [
        decision("", action("read_file", path="plan.md"), step="EXECUTION"),  # fails: back to PLANNING
        write("plan.md", "# Plan\n", step="REVIEW"),
        decision("", action("read_file", path="plan.md"), step="PLANNING"),  # refused: REVIEW stays
        *(write(f"chapter{n}.md", f"# {n}\n", step="EXECUTION") for n in range(9)),
        decision("", action("search", pattern="value"), step="REVIEW"),
        decision("The book is written."),
    ]
    third = [
        decision("", action("delete_file", path="part0.py"), step="EXECUTION"),  # asked, refused
        decision("Then I move it.", action("move_file", path="part0.py", to="old.py"), step="EXECUTION"),
        *(decision("", action("read_file", path=f"part{n}.py"), step="EXECUTION") for n in range(1, 9)),
        decision("", action("list_files"), step="REVIEW"),
        decision("Tidied up."),
    ]
    return [*first, *second, *third]


async def test_forty_decisions_walk_through_all_steps_with_error_refusal_and_a_no(tmp_path: Path):
    """A1, A4, D2-D5, G1, K2: on the wire, and told by the log."""
    answers = script()
    assert len(answers) >= 39
    with ModelServer(play(*answers)) as server:
        async with engine(tmp_path, server=server, mode="edits", max_loops=30) as duck:
            chat = duck.app.chat
            assert await chat.say("Make ten parts") == "done"
            assert await chat.say("Write the book") == "done"
            assert await chat.say("Tidy up") == "awaiting_approval"
            assert await chat.answer(AnswerApproval(yes=False, reason="keep it")) == "done"

            made = duck.of(DecisionMade)
            assert len(made) == len(answers)
            walked = {(t.start, t.end) for t in duck.of(Transition)}
            assert {
                (Step.PLANNING, Step.EXECUTION),
                (Step.EXECUTION, Step.REVIEW),
                (Step.REVIEW, Step.DONE),
                (Step.DONE, Step.PLANNING),
                (Step.EXECUTION, Step.PLANNING),
                (Step.EXECUTION, Step.AWAITING_APPROVAL),
                (Step.AWAITING_APPROVAL, Step.PLANNING),
            } <= walked
            assert [t.recovery for t in duck.of(Transition)].count(True) == 1
            assert [(r.start, r.end) for r in duck.of(TransitionRefused)] == [(Step.REVIEW, Step.PLANNING)]
            assert [a.yes for a in duck.of(ApprovalAnswered)] == [False]
            outcomes = [f.outcome for f in duck.of(ActionFinished)]
            assert (outcomes.count("failed"), outcomes.count("refused")) == (1, 1)
            assert [r.outcome for r in duck.of(RequestFinished)] == [
                "done",
                "done",
                "awaiting_approval",
                "done",
            ]
            assert len(duck.state.summaries) == 3
            told = Session(duck.app.log, duck.state.session_id)
            assert told.state == duck.state
    asked = [asked_for(request.body) for request in server.requests]
    assert (asked.count("Decision"), asked.count("SatisfactionEvaluation")) == (len(answers), 3)
    assert (tmp_path / "old.py").exists()
