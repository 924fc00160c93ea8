"""L1, C5, M1: whoever comes back after the window was closed is asked again what was open."""

import shutil
from pathlib import Path

import pytest

from fakes.engine import action, decision
from fakes.tmux import conversation_in

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

WRITE = decision("", action("write_file", path="a.txt", content="neu\n"))
UNSURE = decision("", action("read_file", path="b.txt"), confidence=0.3)


def test_C5_L1_an_open_approval_is_asked_again(folder: Path):
    with conversation_in(folder, WRITE) as window:
        window.wait_for_prompt()
        window.say("Write a.txt")
        window.wait_for("Allow it?")
    assert not (folder / "a.txt").exists()
    with conversation_in(folder, decision("Written."), language="ja", args=("--continue",)) as window:
        shown = window.wait_for("許可しますか")
        assert "> Write a.txt" in shown
        assert "+neu" in shown
        window.say("はい")
        window.wait_for("Written.")
    assert (folder / "a.txt").read_text() == "neu\n"


def test_C5_L1_an_open_consultation_is_asked_again_by_continue_and_by_resume(folder: Path):
    (folder / "b.txt").write_text("b\n")
    with conversation_in(folder, UNSURE) as window:
        window.wait_for_prompt()
        window.say("Look at b.txt")
        window.wait_for("Your choice")
    with conversation_in(folder, args=("--continue",), language="ja") as window:
        shown = window.wait_for("番号で選んでください")
        assert "4. この調子で続ける" in shown
    with conversation_in(folder, decision("I went on."), args=("resume",)) as window:
        shown = window.wait_for("Your choice")
        assert "no longer sure" in shown
        window.say("4")
        window.wait_for("→ Continue like this", "I went on.")
        window.wait_for_prompt()
