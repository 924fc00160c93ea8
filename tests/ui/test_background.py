"""Background work in the conversation: its questions, its reports, and the chat beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.conversation import conversation, ready
from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.terminal import Terminal


def run_tasks(*tasks: dict[str, Any]) -> str:
    call = {"operation": "task_loop.run", "args": {"task_list": list(tasks)}}
    return decision("I do that in the background.", call, next_step="defer")


REPORT = {"status": "success", "summary": "The file is written.", "failures": [], "next_action": ""}


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


WRITE = action("write_file", path="a.txt", content="neu\n")


def test_C1_the_background_asks_in_the_chat_and_its_report_goes_on(folder: Path):
    report = {"for": "TaskReport", "text": json.dumps(REPORT)}
    with conversation(folder, run_tasks(WRITE), report, decision("All done.")) as terminal:
        ready(terminal)
        terminal.type("write it\r")
        terminal.wait_for("in the background")
        terminal.wait_for("Allow it?")
        assert "+neu" in terminal.text
        terminal.type("y\r")
        terminal.wait_for("The file is written.")
        terminal.wait_for("All done.")
    assert (folder / "a.txt").exists()


def test_C1_a_question_is_answered_and_tasks_are_shown_while_the_background_works(folder: Path, gate: Gate):
    answers = [run_tasks(WRITE), gate.hold(REPORT, "TaskReport"), decision("Paris.", next_step="defer")]
    with conversation(folder, *answers, args=("--mode", "edits", "--workspace", str(folder))) as terminal:
        ready(terminal)
        terminal.type("write it\r")
        terminal.wait_for("Background tasks started")
        terminal.type("Capital of France?\r")
        terminal.wait_for("Paris.")
        terminal.wait_for("✓ wrote a.txt")
        terminal.type("/tasks\r")
        terminal.wait_for("1 of 1 tasks done")
        terminal.wait_for("● wrote a.txt")
        assert any(line.startswith("▰▰▰▰▰▰▰▰▰▰ tasks 1/1") for line in terminal.shown), (
            "the bar above the prompt"
        )
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0


def test_what_was_being_typed_is_still_there_after_the_background_called(folder: Path, gate: Gate):
    answers = [
        run_tasks(WRITE),
        gate.hold(REPORT, "TaskReport"),
        decision("All done."),
        decision("You said it whole."),
    ]
    with conversation(folder, *answers, args=("--mode", "edits", "--workspace", str(folder))) as terminal:
        ready(terminal)
        terminal.type("write it\r")
        terminal.wait_for("Background tasks started")
        terminal.wait_for("a.txt")
        terminal.type("half a sent")
        terminal.wait_for("> half a sent")
        gate.open()
        terminal.wait_for("All done.")
        terminal.wait_for("> half a sent")
        terminal.type("ence\r")
        terminal.wait_for("You said it whole.")
        assert "half a sentence" in terminal.text


def test_C4_cancel_stops_the_background(folder: Path, gate: Gate):
    answers = [run_tasks(WRITE), gate.hold(REPORT, "TaskReport"), decision("I see that it was stopped.")]
    with conversation(folder, *answers, args=("--mode", "edits", "--workspace", str(folder))) as terminal:
        ready(terminal)
        terminal.type("/cancel\r")
        terminal.wait_for("No tasks are running")
        terminal.type("write it\r")
        terminal.wait_for("Background tasks started")
        terminal.wait_for("a.txt")
        terminal.type("/cancel\r")
        terminal.wait_for("were stopped:")
        terminal.wait_for("I see that it was stopped.")


def test_G11_cancel_stops_a_command_that_goes_on_and_offers_what_it_did(folder: Path):
    """The request continues with the next message, not with the answer."""
    command = "echo mine > own; while echo up; do sleep 0.1; done"
    start = {"operation": "shell.start", "args": {"command": command}}
    first_words = {"operation": "shell.read", "args": {"id": "c1"}}  # the file is written before them
    runs = decision("It runs.", next_step="pending_user")
    answers = [decision("", start), decision("", first_words), runs, decision("I see.")]
    with conversation(folder, *answers, args=("--mode", "auto", "--workspace", str(folder))) as terminal:
        ready(terminal)
        terminal.type("serve\r")
        terminal.wait_for("It runs.")
        terminal.type("/cancel\r")
        terminal.wait_for("Stopped, as you wished")
        terminal.wait_for("Allow it?")
        assert not (folder / "own").exists()
        terminal.type("y\r")
        terminal.wait_for("kept the command's changes")
        terminal.type("and?\r")
        terminal.wait_for("I see.")
        assert (folder / "own").read_text() == "mine\n"


def test_quitting_stops_the_background_in_order(folder: Path, gate: Gate):
    with conversation(
        folder,
        run_tasks(WRITE),
        gate.hold("{}", "TaskReport"),
        args=("--mode", "edits", "--workspace", str(folder)),
    ) as terminal:
        ready(terminal)
        terminal.type("write it\r")
        terminal.wait_for("Background tasks started")
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
    assert isinstance(terminal, Terminal)
