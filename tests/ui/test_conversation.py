"""The conversation on a real terminal, in both languages."""

import subprocess
import sys
from pathlib import Path

from fakes.conversation import conversation
from fakes.engine import action, decision, write_script
from fakes.terminal import Terminal

WRITE = decision("", {**action("write_file", path="a.txt", content="neu\n"), "reasoning": "you asked for it"})
SLOW = {"for": "Decision", "text": decision("too late"), "delay_s": 600}


def test_a_message_is_answered_and_the_prompt_comes_back(folder: Path):
    """M1."""
    with conversation(folder, decision("Paris, of course."), decision("Rome.")) as terminal:
        terminal.wait_for("/help")
        terminal.type("Capital of France?\r")
        terminal.wait_for("Paris, of course.")
        terminal.type("And Italy?\r")
        terminal.wait_for("Rome.")
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
    assert "scripted:" in terminal.text


def test_the_start_and_the_help_are_japanese_for_japanese(folder: Path):
    """M4: full width on the screen, nothing in English but names."""
    with conversation(folder, decision("こんにちは。何を作りましょうか？"), language="ja") as terminal:
        terminal.wait_for("やりたいこと")
        terminal.type("こんにちは\r")
        terminal.wait_for("何を作りましょうか")
        terminal.type("/help\r")
        terminal.wait_for("今の作業だけを止めます")
        terminal.wait_for("メッセージになります。\n>")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0


def test_a_change_shows_its_difference_and_waits_for_yes(folder: Path):
    """G1, M1: the approval is part of the conversation."""
    with conversation(folder, WRITE, decision("Written.")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert "+neu" in terminal.text
        assert "you asked for it" in terminal.text
        assert not (folder / "a.txt").exists()
        terminal.type("y\r")
        terminal.wait_for("Written.")
    assert (folder / "a.txt").read_text() == "neu\n"


def test_no_with_a_reason_changes_nothing(folder: Path):
    with conversation(folder, WRITE, decision("Then I leave it.")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("n wrong file\r")
        terminal.wait_for("Then I leave it.")
    assert not (folder / "a.txt").exists()


def test_keys_typed_ahead_are_no_answer(folder: Path):
    """SAFETY 8: an approval is not answered by what was typed before it was shown."""
    slow = {"for": "Decision", "text": WRITE, "delay_s": 1.0}
    with conversation(folder, slow, decision("I leave it.")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("thinking…")
        terminal.type("y\ry\r")
        terminal.wait_for("Allow it?")
        terminal.type("\r")
        terminal.wait_for("I leave it.")
    assert not (folder / "a.txt").exists()


def test_ctrl_c_stops_the_work_and_not_the_program(folder: Path):
    """M1."""
    with conversation(folder, SLOW, decision("Still here.")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("think\r")
        terminal.wait_for("thinking…")
        terminal.type("\x03")
        terminal.wait_for("Stopped.")
        terminal.type("hello?\r")
        terminal.wait_for("Still here.")


def test_ctrl_c_at_the_prompt_clears_the_line(folder: Path):
    with conversation(folder, decision("Yes?")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("never mind\x03")
        terminal.type("hello\r")
        terminal.wait_for("Yes?\n>")
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0


def test_an_unknown_command_is_said_to_be_one(folder: Path):
    with conversation(folder) as terminal:
        terminal.wait_for("\n>")
        terminal.type("/hepl\r")
        terminal.wait_for("There is no command /hepl")


def test_continue_takes_up_the_last_session_with_its_open_question(folder: Path):
    """L1, M1: an interrupted approval is asked again."""
    with conversation(folder, WRITE) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.process.kill()
    args = ("--continue", "--workspace", str(folder))
    with conversation(folder, decision("Written."), args=args) as terminal:
        terminal.wait_for("Allow it?")
        terminal.type("yes\r")
        terminal.wait_for("Written.")
    assert (folder / "a.txt").exists()


def test_lines_through_a_pipe_are_a_conversation_too(folder: Path):
    script = write_script(folder.parent / "script.jsonl", [decision("One."), decision("Two.")])
    done = subprocess.run(
        [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", f"scripted:{script}"],
        input="first\nsecond\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "One." in done.stdout
    assert "Two." in done.stdout
    assert "\x1b" not in done.stdout


def test_K2_a_person_can_be_the_messenger_of_a_model(folder: Path):
    """The relay: the prompt is shown, the answer is pasted, the work is done."""
    command = [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", "relay"]
    with Terminal(command, rows=60) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Capital of France?\r")
        terminal.wait_for("Its answer:")
        assert "Output: Decision" in terminal.text
        terminal.type('{"next_step": "done", "reply": "It is Paris."}\r')
        terminal.wait_for("\nIt is Paris.\n>")
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
