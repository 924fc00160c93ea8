"""M1: Ctrl-C and Esc at every stage stop what is running and nothing else, in a window over real HTTP."""

import shutil
import sys
from pathlib import Path

import pytest

from fakes.engine import action, decision
from fakes.model_server import Answer, ModelServer
from fakes.plays import play
from fakes.tmux import Window

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

THINKS = Answer("", fault="stall")
STREAMS = Answer(
    '{"next_step": "continue", "reply": "This is only the beginning of',
    fault="stall",
)
SLEEPS = {
    "operation": "shell.run",
    "args": {"command": "echo began; sleep 600; echo > ended.txt"},
}
WRITES = action("write_file", path="a.txt", content="neu\n")


def talk_about(folder: Path, server: ModelServer, language: str = "en") -> Window:
    return Window(
        folder.parent,
        [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", "openai:any"],
        env={"OPENAI_BASE_URL": f"{server.url}/v1", "DUCKFLOW_LANGUAGE": language},
    )


@pytest.mark.parametrize("key", ["C-c", "Escape"])
def test_M1_the_program_stays_whatever_is_stopped(folder: Path, key: str):
    (folder / "b.txt").write_text("b\n")
    unsure = decision("", action("read_file", path="b.txt"), confidence=0.3)
    script = play(
        THINKS,
        STREAMS,
        decision("", SLEEPS),
        decision("", WRITES),
        unsure,
        decision("I am still here.", next_step="done"),
    )
    with ModelServer(script) as server, talk_about(folder, server) as window:
        window.wait_for_prompt()
        window.keys("half a line")
        window.wait_for("> half a line")
        if key == "C-c":
            window.keys(key)
            window.wait_for_prompt()
        else:
            window.keys(key, "C-u")

        def stop(count: int) -> None:
            window.keys(key)
            window.wait(lambda shown: shown.count("Stopped.") == count)
            window.wait_for_prompt()

        window.say("think")
        window.wait(lambda _: len(server.requests) == 1)
        stop(1)
        window.say("stream")
        window.wait_for("This is only the beginning")
        stop(2)
        window.say("sleep")
        window.wait(lambda shown: any(line.strip() == "began" for line in shown.splitlines()))
        stop(3)
        window.say("write")
        window.wait(lambda shown: "Write a.txt?" in shown and shown.count("Allow it?") == 1)
        stop(4)
        window.say("look")
        window.wait_for("Your choice")
        window.keys(key)
        window.wait_for_prompt()
        window.say("Are you there?")
        window.wait_for("I am still here.")
        shown = window.wait_for_prompt()
        assert not (folder / "a.txt").exists()
        assert not (folder / "ended.txt").exists()
        assert "Traceback" not in shown
        window.keys("C-c")
        window.wait_for("Press Ctrl-C again")
        window.keys("C-c")
        window.wait_for_end()


def test_M1_ctrl_c_twice_while_it_works_leaves(folder: Path):
    with ModelServer(play(THINKS)) as server, talk_about(folder, server, "ja") as window:
        window.wait_for_prompt()
        window.say("考えて")
        window.wait(lambda _: len(server.requests) == 1)
        window.keys("C-c", "C-c")
        window.wait_for_end()
