"""The screen during work, and protection of the terminal from a model's text."""

import re
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from duckflow.domain.decision import Action
from duckflow.domain.events import (
    ApprovalAnswered,
    Evaluated,
    Event,
    Reply,
    RequestFinished,
    StoredEvent,
    UserMessage,
)
from duckflow.domain.state import Approval
from duckflow.domain.work.objective import SatisfactionEvaluation
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.scrollback import Scrollback
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import recall
from duckflow.ui.views.approval import points_text
from fakes.conversation import conversation, ready
from fakes.engine import action, decision
from fakes.gate import Gate
from fakes.terminal import Terminal
from fakes.tmux import TURNING

STEERING = "\x1b[2J\x1b]0;mine\x07all good\x9b1A"


def test_I10_one_plain_line_says_what_is_going_on_by_profile_then_time_and_tokens(
    folder: Path, tmp_path: Path
):
    analysis = decision("", action("list_files"), task_profile="code_analysis")
    first, second = Gate(tmp_path / "first"), Gate(tmp_path / "second")
    with conversation(folder, first.hold(analysis), second.hold(decision("Here."))) as terminal:
        ready(terminal)
        terminal.type("hello\r")
        terminal.wait_for("🦆 thinking…")
        first.open()
        terminal.wait_for("🦆 analysing the code…")
        line = next(line for line in terminal.shown if "analysing" in line)
        doing, hint = re.split(f"[{TURNING}]", line)
        assert doing.strip() == "🦆 analysing the code…", "no numbers say what is going on"
        assert re.fullmatch(r"([\d,]+ tokens · )?Esc stops", hint.strip())
        assert re.search(r" · \d+ s", terminal.shown[-1]), "the time is in the status line, once"
        second.open()
        terminal.wait_for("Here.")
        ready(terminal)
        assert "analysing" not in "\n".join(terminal.shown), "gone once it is done"


def test_a_reply_is_seen_while_it_is_written_and_stays_once(folder: Path, tmp_path: Path):
    """A small model's reply appears before the file it announces is written."""
    gate = Gate(tmp_path / "gate")
    content = gate.hold("print(1)\n```", "Content")
    wants = (
        '{"wants": "change", "operation": "file_ops.write_file", "paths": ["a.py"], "reply": "I write a.py."}'
    )
    with conversation(folder, wants, content, env={"DUCKFLOW_LLM__SMALL": "true"}) as terminal:
        ready(terminal)
        terminal.type("Maybe a.py with a number\r")  # no plain wish, so the model decides
        terminal.wait_for("\nI write a.py.\n")
        gate.open()
        terminal.wait_for("Allow it?")
        assert terminal.text.count("\nI write a.py.\n") == 1


def test_coming_back_shows_what_was_last_said(folder: Path):
    """L1."""
    with conversation(folder, decision("It is called Tama.")) as terminal:
        ready(terminal)
        terminal.type("What is the cat called?\r")
        terminal.wait_for("Tama.\n")
        terminal.type("\x04")
        terminal.wait_for_end()
    with conversation(folder, args=("--continue", "--workspace", str(folder))) as terminal:
        terminal.wait_for("It is called Tama.")
        assert "> What is the cat called?\n\nIt is called Tama." in terminal.text


def test_long_replies_are_broken_between_words(folder: Path):
    reply = "word " * 40 + "日本語の文章も途中で切れることなく、きちんと折り返されます。" * 3
    with conversation(folder, decision(reply)) as terminal:
        ready(terminal)
        terminal.type("hello\r")
        terminal.wait_for("返されます。\n")
        lines = terminal.text.split("\n")
        assert not [line for line in lines if line.startswith(("ord", "rd", "。", "、"))]


def test_a_reply_can_not_steer_the_terminal(folder: Path):
    with conversation(folder, decision(STEERING)) as terminal:
        ready(terminal)
        terminal.type("hello\r")
        terminal.wait_for("all good")
        assert b"\x1b]0;" not in terminal.raw
        assert b"\x1b[2J" not in terminal.raw
        assert "\\u{1b}[2J" in terminal.text


def test_what_the_model_says_of_a_change_can_not_draw_a_question_of_its_own():
    """SAFETY 8: the reason stays on its line, with hidden characters made visible."""
    shown = points_text(
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
    """`make run` checks each time if the model is needed; with a model in the settings it prints nothing."""
    command = [sys.executable, "-m", "duckflow", "model", "install", "--if-needed"]
    with Terminal(command, env={"DUCKFLOW_MODEL": "scripted:none"}, warm=True) as terminal:
        assert terminal.wait_for_end() == 0
        assert not terminal.text.strip()


def test_M2_a_long_text_comes_in_slices_and_each_line_in_one_piece():
    written: list[str] = []
    output: Any = SimpleNamespace(in_one_piece=nullcontext, write_raw=written.append)
    app: Any = SimpleNamespace(is_running=False, context=None, invalidate=lambda: None)
    long, lines = "x" * 40_000, "".join(f"line {number}\n" for number in range(5_000))
    Scrollback(app, output).write([f"{lines}{long}\nend", long])
    assert "".join(written).replace("\r\n", "\n") == f"{lines}{long}\nend\n{long}\n"
    assert len(written) > 2


def test_L1_coming_back_shows_a_no_with_its_reason_the_verdict_and_an_interruption():
    now = datetime(2026, 1, 2, tzinfo=UTC)
    verdict = SatisfactionEvaluation(overall_score=0.5, done=False, missing_aspects=("the tests",))
    happened: list[Event] = [
        UserMessage(request_id="r", text="an old request"),
        Reply(text="old"),
        RequestFinished(request_id="r", outcome="done", exit_code=0),
        UserMessage(request_id="s", text="write `a`"),
        ApprovalAnswered(approval_id="p1", yes=True),
        ApprovalAnswered(approval_id="p2", yes=False, reason="too long"),
        Reply(text="`a` is written."),
        Evaluated(iteration=1, evaluation=verdict),
        RequestFinished(request_id="s", outcome="interrupted", exit_code=130),
    ]
    stored = [StoredEvent(seq=n, at=now, event=one) for n, one in enumerate(happened, 1)]
    shown: list[str] = []
    recall(stored, Writer(shown.extend, lambda: (80, 24), formatted=True))
    text = re.sub("\x1b\\[[0-9;]*m", "", "\n".join(shown))
    assert "an old request" not in text
    assert "→ allowed" not in text
    for told in ("> write `a`", "not allowed: too long", "is written.", "Not satisfied", "go on"):
        assert told in text, text
