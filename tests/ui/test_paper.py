"""What a person sees while they wait, and what a model can't do to the terminal."""

import sys
from pathlib import Path

from duckflow.domain.decision import Action
from duckflow.domain.state import Approval
from duckflow.ui.lines import approval_text, harmless
from fakes.conversation import conversation
from fakes.engine import action, decision
from fakes.terminal import Terminal

SLOW = {"for": "Decision", "text": decision("too late"), "delay_s": 600}
WRITE = decision("", action("write_file", path="a.txt", content="neu\n"))
STEERING = "\x1b[2J\x1b]0;mine\x07all good\x9b1A"


def test_a_sign_of_life_counts_the_seconds_and_is_gone_afterwards(folder: Path):
    """M1, I10."""
    late = {"for": "Decision", "text": decision("Here."), "delay_s": 2.5}
    with conversation(folder, late) as terminal:
        terminal.wait_for("\n>")
        terminal.type("hello\r")
        terminal.wait_for("thinking… 2 s")
        terminal.wait_for("Here.\n>")
        assert "thinking" not in terminal.text


def test_the_sign_comes_back_below_a_reply_that_stops_in_the_middle(folder: Path):
    """A small model's reply is there before the file it announces is written."""
    content = {"for": "Content", "text": "print(1)\n```", "delay_s": 2.5}
    wants = (
        '{"wants": "change", "operation": "file_ops.write_file", "paths": ["a.py"], "reply": "I write a.py."}'
    )
    with conversation(folder, wants, content, env={"DUCKFLOW_LLM__SMALL": "true"}) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.py\r")
        terminal.wait_for("I write a.py.\n🦆 thinking… 2 s")
        terminal.wait_for("Allow it?")
        assert "I write a.py.\n\n🦆 May I write a.py?" in terminal.text


SLOWLY = """
import asyncio
from duckflow.ui.paper import Paper

async def main():
    paper = Paper()
    async with paper.waiting():
        for piece in ("\\nstats.py", " は", "平均値を", "計算します。"):
            paper.run(piece)
            paper.sign()
    paper.end()

asyncio.run(main())
"""


def test_a_reply_with_pauses_reads_as_if_it_had_none():
    """M1: the sign between two pieces shifts nothing, in full width either."""
    with Terminal([sys.executable, "-c", SLOWLY]) as terminal:
        assert terminal.wait_for_end() == 0
        assert terminal.text.strip() == "stats.py は平均値を計算します。"


def test_keys_typed_while_it_works_do_not_show_amid_the_output(folder: Path):
    """They wait for the prompt."""
    late = {"for": "Decision", "text": decision("First."), "delay_s": 1.0}
    with conversation(folder, late, decision("Second.")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("one\r")
        terminal.wait_for("thinking…")
        terminal.type("two\r")
        terminal.wait_for("Second.")
        assert "First.\n> two" in terminal.text
        assert b"two" not in terminal.raw.partition(b"First.")[0]


def test_ctrl_c_at_an_approval_is_a_no_and_stops(folder: Path):
    """SAFETY 8, M1."""
    with conversation(folder, WRITE, SLOW) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("\x03")
        terminal.wait_for("Stopped.\n>")
        assert "The user said no." in terminal.text
    assert not (folder / "a.txt").exists()


def test_coming_back_shows_what_was_last_said(folder: Path):
    """L1."""
    with conversation(folder, decision("It is called Tama.")) as terminal:
        terminal.wait_for("\n>")
        terminal.type("What is the cat called?\r")
        terminal.wait_for("Tama.\n>")
        terminal.type("\x04")
        terminal.wait_for_end()
    with conversation(folder, args=("--continue", "--workspace", str(folder))) as terminal:
        terminal.wait_for("It is called Tama.")
        assert "> What is the cat called?\nIt is called Tama." in terminal.text


def test_long_replies_are_broken_between_words(folder: Path):
    reply = "word " * 40 + "日本語の文章も途中で切れることなく、きちんと折り返されます。" * 3
    with conversation(folder, decision(reply)) as terminal:
        terminal.wait_for("\n>")
        terminal.type("hello\r")
        terminal.wait_for("返されます。\n>")
        lines = terminal.text.split("\n")
        assert not [line for line in lines if line.startswith(("ord", "rd", "。", "、"))]


def test_no_color_is_honoured(folder: Path):
    with conversation(folder, WRITE, env={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert b"\x1b[32m" not in terminal.raw
    with conversation(folder, WRITE) as terminal:
        terminal.wait_for("\n>")
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        assert b"\x1b[32m+neu" in terminal.raw


def test_a_reply_can_not_steer_the_terminal(folder: Path):
    with conversation(folder, decision(STEERING)) as terminal:
        terminal.wait_for("\n>")
        terminal.type("hello\r")
        terminal.wait_for("all good")
        assert b"\x1b]0;" not in terminal.raw
        assert b"\x1b[2J" not in terminal.raw
        assert "\\u{1b}[2J" in terminal.text


def test_what_the_model_says_of_a_change_can_not_draw_a_question_of_its_own():
    """SAFETY 8: the reason stays on its line, with everything in it visible."""
    shown = approval_text(
        Approval(
            approval_id="p1",
            action=Action(operation="file_ops.delete_file", args={"path": "a"}),
            intent=f"tidy\n{STEERING}\u202e",
            rationale="mode ask",
            difference="-a\n",
            digest="d",
        )
    )
    why = next(line for line in shown.split("\n") if "tidy" in line)
    assert "all good" in why
    assert "\\u{202e}" in why
    assert "\x1b" not in shown


def test_emoji_and_japanese_are_harmless():
    assert harmless("👨‍👩‍👧 ありがとう\tok\n") == "👨‍👩‍👧 ありがとう\tok\n"


def test_a_bar_for_a_model_that_is_there_already_is_not_shown(folder: Path):
    """`make run` asks each time whether the model is needed; with one named it says nothing."""
    command = [sys.executable, "-m", "duckflow", "model", "install", "--if-needed"]
    with Terminal(command, env={"DUCKFLOW_MODEL": "scripted:none"}) as terminal:
        assert terminal.wait_for_end() == 0
        assert not terminal.text.strip()
