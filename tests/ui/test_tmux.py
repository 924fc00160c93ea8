"""M1: whole conversations in tmux, whose window can really be made larger and smaller."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.engine import action, decision, write_script

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

WRITE = decision("", action("write_file", path="a.txt", content="neu\n"))
LATE = {"for": "Decision", "text": decision("日本語の返事です。"), "delay_s": 1.0}


class Window:
    """A window of a tmux server of its own."""

    def __init__(self, socket: Path, command: list[str], home: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", os.devnull]
        env = {"HOME": str(home), "DUCKFLOW_LANGUAGE": "ja", "PYTHONPATH": os.pathsep.join(sys.path)}
        given = [f"{name}={value}" for name, value in env.items()]
        line = shlex.join(["env", *given, *command])
        self._run("new-session", "-d", "-s", "w", "-x", "80", "-y", "30", line)

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True).stdout

    def keys(self, *keys: str) -> None:
        self._run("send-keys", "-t", "w", *keys)

    def resize(self, columns: int) -> None:
        self._run("resize-window", "-t", "w", "-x", str(columns), "-y", "30")

    def shown(self) -> str:
        lines = self._run("capture-pane", "-p", "-t", "w", "-S", "-100").split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def wait(self, met: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + 30
        while not met(shown := self.shown()):
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)
        return shown

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def window(folder: Path, own_home: Path) -> Iterator[Window]:
    script = write_script(folder.parent / "script.jsonl", [LATE, WRITE, decision("書きました。")])
    command = [sys.executable, "-m", "duckflow", "--workspace", str(folder), "--model", f"scripted:{script}"]
    opened = Window(folder.parent / "tmux", command, own_home)
    yield opened
    opened.close()


def test_a_conversation_in_japanese_through_a_resize(window: Window, folder: Path):
    window.wait(lambda shown: "\n>\n[ Duckflow" in shown)
    window.keys("こんにちは", "Enter")
    window.wait(lambda shown: "🦆 考えています…" in shown)
    window.keys("書きかけの長いメッセージです、折り返しも確認します")
    window.wait(lambda shown: "日本語の返事です。" in shown)
    window.resize(40)
    window.wait(lambda shown: "[ 🦆 |" in shown)
    shown = window.wait(lambda shown: "> 書きかけの" in shown)
    assert shown.count("書きかけの") == 1, shown
    window.resize(100)
    window.wait(lambda shown: "[ Duckflow | Mood" in shown)
    window.keys("C-c")
    window.keys("a.txt を書いて", "Enter")
    window.wait(lambda shown: "許可しますか" in shown)
    assert not (folder / "a.txt").exists()
    window.keys("はい", "Enter")
    window.wait(lambda shown: "書きました。" in shown)
    assert (folder / "a.txt").read_text() == "neu\n"
