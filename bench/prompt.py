"""Measures how quickly the prompt appears, and whether it stays responsive under a flood of output.

    .venv/bin/python bench/prompt.py [--rounds N]

The bound for the start is 1.5 times a bare prompt_toolkit prompt with a bottom bar, measured alternately in
the same run. The floods are 100,000 lines of command output and a reply of 10 MB, while keys are typed: the
time until each key shows is measured, and none may be lost. Needs an otherwise idle machine.
"""

import argparse
import json
import os
import select
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from fakes.terminal import Terminal  # noqa: E402 - after the path is set

BARE = """
from prompt_toolkit import PromptSession
PromptSession(bottom_toolbar="bar").prompt("> ")
"""
FLOOD = """
import asyncio, sys
from pathlib import Path
from duckflow.domain.events import Reply, StoredEvent
from duckflow.domain.live_updates import OutputPiece
from duckflow.domain.state import AgentState
from duckflow.ui.frontend import open_frontend
from duckflow.ui.input.keyboard import Listener
from duckflow.ui.input.prompt_view import PromptView
from duckflow.ui.screen import Screen

class Flooded(Listener):
    def view(self, columns):
        return PromptView(activity=self.screen.activity.lines(AgentState(), (), columns))

async def main():
    frontend = open_frontend(lambda: Path(sys.argv[1]) / "history")
    screen = Screen(frontend.writer)
    screen.activity.busy = True
    frontend.prompt.listener = Flooded(frontend.prompt.left)
    frontend.prompt.listener.screen = screen
    await asyncio.sleep(0.5)
    frontend.writer.line("ready")
    await frontend.keyboard.inbox.get()
    if sys.argv[2] == "output":
        for start in range(0, 100_000, 50):
            screen(OutputPiece(text="".join(f"line {n} of the output\\n" for n in range(start, start + 50))))
            frontend.prompt.refresh()
            await asyncio.sleep(0)
    else:
        paragraph = "A reply with **bold** words, `code` and 日本語の文章。 " * 20
        reply = Reply(text="\\n\\n".join([paragraph] * (10_000_000 // len(paragraph))))
        screen(StoredEvent.model_construct(seq=1, at=None, event=reply))
    frontend.writer.line("flood over")
    while True:
        frontend.writer.line("said " + await frontend.keyboard.inbox.get())

asyncio.run(main())
"""
PATIENCE_S = 60
KEYS = "abcdefghijklmnopqrstuvwxyz0123456789"


def start_once(command: list[str], env: dict[str, str], mark: str) -> float:
    """Return the seconds from the start of a program to its first prompt."""
    start = time.perf_counter()
    with Terminal(command, env=env) as terminal:
        terminal.wait_for(mark, 60)
        return time.perf_counter() - start


def starts(rounds: int, home: str) -> None:
    """Measure the programs alternately, so that other load affects all of them."""
    script = Path(home) / "script.jsonl"
    script.write_text(json.dumps({"for": "Decision", "text": "{}"}) + "\n")
    env = {"HOME": home, "XDG_STATE_HOME": f"{home}/state", "DUCKFLOW_LANGUAGE": "en"}
    bare = [sys.executable, "-c", BARE]
    ours = [sys.executable, "-m", "duckflow", "--workspace", home, "--model", f"scripted:{script}"]
    marks = {"bare": (bare, ">"), "duckflow": (ours, ">"), "engine": (ours, "😎🧘💪")}
    took: dict[str, list[float]] = {name: [] for name in marks}
    for _ in range(rounds + 1):
        for name, (command, mark) in marks.items():
            took[name].append(start_once(command, env, mark))
    medians = {name: statistics.median(times[1:]) for name, times in took.items()}
    bound = 1.5 * medians["bare"]
    verdict = "ok" if medians["duckflow"] <= bound else "TOO SLOW"
    print(f"bare prompt_toolkit prompt   {medians['bare'] * 1000:6.0f} ms")
    ours_ms, bound_ms = medians["duckflow"] * 1000, bound * 1000
    print(f"duckflow, prompt             {ours_ms:6.0f} ms   (bound {bound_ms:.0f} ms) {verdict}")
    print(f"duckflow, engine behind it   {medians['engine'] * 1000:6.0f} ms")


def flood(kind: str, home: str) -> None:
    """Type during a flood. Print how long each key takes to show, and check that all arrive."""
    command = [sys.executable, "-c", FLOOD, home, kind]
    with Terminal(command, env={"HOME": home}, columns=100) as terminal:
        terminal.wait_for("ready")
        start = time.perf_counter()
        terminal.type("go\r")
        watched = Watched(terminal)
        times: list[float] = []
        typed = ""
        for key in KEYS:
            typed += key
            terminal.type(key)
            times.append(watched.until(typed.encode(), key.encode()))
        during = not watched.seen(b"flood over")
        watched.until(b"flood over")
        took = time.perf_counter() - start
        terminal.type("\r")
        watched.until(f"said {typed}".encode())
    print(
        f"{kind:<8} a key shows after {statistics.median(times) * 1000:4.0f} ms, "
        f"at worst {max(times) * 1000:4.0f} ms; "
        f"all {len(typed)} keys arrived; all was written after {took:.1f} s"
        f"{'' if during else ' (before the last key)'}"
    )


class Watched:
    """Reads a terminal's output without drawing it, because drawing 10 MB would dominate the measurement."""

    def __init__(self, terminal: Terminal) -> None:
        self._descriptor = terminal._ours
        self._tail = b""

    def seen(self, mark: bytes) -> bool:
        """Return True if the recent output contains this."""
        return mark in self._tail

    def until(self, mark: bytes, drawn: bytes | None = None) -> float:
        """Return the seconds until this is in the output. A small update with the key in it counts, too."""
        start = time.perf_counter()
        while time.perf_counter() - start < PATIENCE_S:
            if self.seen(mark):
                return time.perf_counter() - start
            if not select.select([self._descriptor], [], [], 0.5)[0]:
                continue
            got = os.read(self._descriptor, 65_536)
            self._tail = (self._tail + got)[-200_000:]
            if drawn is not None and len(got) < 400 and drawn in got:
                return time.perf_counter() - start
        return sys.exit(f"waited in vain for {mark!r}")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as home:
        starts(rounds, home)
        flood("output", home)
        flood("reply", home)


if __name__ == "__main__":
    main()
