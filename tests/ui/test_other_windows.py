"""M7: several processes show and control the same session."""

from contextlib import closing
from pathlib import Path

from duckflow.domain.commands import (
    AnswerShown,
    CancelWork,
    ChooseShown,
    SayMessage,
    SetEffort,
    SetMode,
    hash_of,
    objection_to,
)
from duckflow.domain.decision import Action
from duckflow.domain.events import ApprovalAnswered, RequestFinished, UserMessage
from duckflow.domain.frozen import replace
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.state import AgentState
from fakes.conversation import conversation, ready
from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.rows import Failures
from fakes.second_window import SecondWindow, wait_until

YES = AnswerApproval(yes=True)


def write(name: str) -> str:
    return decision("", {**action("write_file", path=name, content="neu\n"), "reasoning": "you asked for it"})


def test_M7_a_question_answered_elsewhere_vanishes_in_the_terminal_and_the_other_way_round(folder: Path):
    answers = (write("a.txt"), decision("Written."), write("b.txt"), decision("Both."))
    with conversation(folder, *answers) as terminal:
        ready(terminal)
        with closing(SecondWindow()) as window:
            assert window.send(SayMessage(text="!touch never, and write a.txt")) == ""
            terminal.wait_for("Allow it?")
            assert "> !touch never" in terminal.text, "a message, not a command of the terminal's"
            asked = window.state.approval
            assert asked is not None
            stale = AnswerShown(question_hash="0" * 64, answer=YES)
            assert window.send(stale) == "clients.stale"
            assert not (folder / "a.txt").exists()
            assert window.send(AnswerShown(question_hash=hash_of(asked), answer=YES)) == ""
            terminal.wait_for("Written.")
            assert "answered in another window" in terminal.text
            assert (folder / "a.txt").read_text() == "neu\n"
            assert not (folder / "never").exists()
            assert window.send(AnswerShown(question_hash=hash_of(asked), answer=YES)) == "clients.stale", (
                "used once"
            )

            terminal.type("And b.txt\r")
            second = wait_until(lambda: window.state.approval)
            terminal.wait_for("b.txt")
            terminal.wait_until(lambda: terminal.text.count("Allow it?") > 1 or "Allow" in terminal.shown[-2])
            terminal.type("n not that one\r")
            terminal.wait_for("Both.")
            assert window.send(AnswerShown(question_hash=hash_of(second), answer=YES)) == "clients.stale"
            assert not (folder / "b.txt").exists()
            assert window.send(CancelWork()) == "clients.nothing_runs"
            assert window.send(SetMode(mode="plan")) == ""
            wait_until(lambda: window.state.mode == "plan")
            assert window.send(SetEffort(effort="high")) == ""
            wait_until(lambda: window.state.effort == "high")
            said = [one.text for one in window.events if isinstance(one, UserMessage)]
            answered = [one.yes for one in window.events if isinstance(one, ApprovalAnswered)]
    assert said == ["!touch never, and write a.txt", "And b.txt"]
    assert answered == [True, False]


def test_M7_work_is_stopped_and_a_consultation_answered_from_elsewhere(folder: Path, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    with conversation(folder, gate.hold(decision("Never said."))) as terminal:
        ready(terminal)
        with closing(SecondWindow()) as window:
            assert window.send(SayMessage(text="Take your time")) == ""
            wait_until(gate.asked)
            later = window.inbox.put(window.session, SayMessage(text="And then this"))
            assert window.send(CancelWork()) == ""
            wait_until(lambda: [one for one in window.events if isinstance(one, RequestFinished)])
            wait_until(lambda: window.inbox.result(later) == "", "for a message that waited its turn")
            wait_until(lambda: sum(isinstance(one, UserMessage) for one in window.events) == 2)
            outcomes = [one.outcome for one in window.events if isinstance(one, RequestFinished)]
    assert outcomes[0] == "interrupted"


def test_M7_only_the_open_question_can_be_answered_and_only_as_it_offers():
    asked = Approval(
        approval_id="p1",
        action=Action(operation="file_ops.write_file"),
        intent="",
        rationale="",
        difference="+x",
        digest="d",
    )
    way = Consultation(consultation_id="c1", kind="oracle", situation="s", choices=("instruct", "rest"))
    approving, consulting = AgentState(approval=asked), AgentState(consultation=way)
    wrong = replace(asked, difference="+y")
    table = [
        (approving, AnswerShown(question_hash=hash_of(asked), answer=YES), ""),
        (approving, AnswerShown(question_hash=hash_of(wrong), answer=YES), "clients.stale"),
        (
            approving,
            AnswerShown(question_hash=hash_of(replace(asked, approval_id="p2")), answer=YES),
            "clients.stale",
        ),
        (approving, AnswerShown(question_hash="", answer=YES), "clients.stale"),
        (
            approving,
            AnswerShown(question_hash=hash_of(asked), answer=replace(YES, always=True)),
            "clients.not_offered",
        ),
        (
            approving,
            AnswerShown(question_hash=hash_of(asked), answer=replace(YES, edited="rm")),
            "clients.not_offered",
        ),
        (approving, ChooseShown(question_hash=hash_of(asked), way=ChooseWay(text="x")), "clients.stale"),
        (consulting, AnswerShown(question_hash=hash_of(way), answer=YES), "clients.stale"),
        (consulting, ChooseShown(question_hash=hash_of(way), way=ChooseWay(choice="rest")), ""),
        (consulting, ChooseShown(question_hash=hash_of(way), way=ChooseWay(text="do this")), ""),
        (
            consulting,
            ChooseShown(question_hash=hash_of(way), way=ChooseWay(choice="stop")),
            "clients.not_offered",
        ),
        (consulting, ChooseShown(question_hash=hash_of(way), way=ChooseWay()), "clients.not_offered"),
        (AgentState(), ChooseShown(question_hash=hash_of(way), way=ChooseWay(text="x")), "clients.stale"),
    ]
    failures = Failures()
    for state, command, expected in table:
        with failures.of(command):
            assert objection_to(command, state) == expected
    failures.report()


def test_L8_the_mode_stays_with_the_session(folder: Path):
    """After a fork and when it is continued, unless a flag says otherwise."""
    where = ("--workspace", str(folder))
    with conversation(folder, decision("Yes.")) as terminal:
        ready(terminal)
        terminal.type("/mode edits\r")
        terminal.wait_for("Mode edits")
        terminal.type("Hello\r")
        terminal.wait_for("Yes.")
        ready(terminal)
        terminal.type("/fork\r")
        terminal.wait_for("mode edits.")
    with conversation(folder, decision("Yes."), args=("-c", *where)) as terminal:
        terminal.wait_for("mode edits.")
    with conversation(folder, decision("Yes."), args=("-c", "--mode", "plan", *where)) as terminal:
        terminal.wait_for("mode plan.")
