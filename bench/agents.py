"""Agents: time of four compared to one, and `kill -9` at random moments while they work and are joined (O2).

    .venv/bin/python bench/agents.py [--kills 50] [--no-times] [--seed 1]

A model server on this machine plays all models and takes a second and a half for each answer. First the same
work in six places is done by one agent and by four, with two, six and ten decisions for each place. Then a
request with four agents is killed at random moments; after the next start the folder must be as before or as
after, with no copies or processes left over.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fakes.agents_at_work import Player, agents, casting, command, environment, writes
from fakes.engine import action, decision
from fakes.model_server import ModelServer
from fakes.plays import play

PLACES = tuple(f"place{number}.txt" for number in range(1, 7))
ANSWER_S = 1.5
ENDS_S = 20.0
"""Seconds in which the processes of a killed agent must end; ending takes some processor time."""
SHARES = (PLACES[:2], PLACES[2:4], PLACES[4:5], PLACES[5:])


def edits(*paths: str, steps: int = 1) -> Player:
    """One agent that edits these files, each in some steps, with a decision for each."""
    contents = [*(f"step {number}\n" for number in range(1, steps)), "new\n"]
    written = (
        decision("I write.", action("write_file", path=path, content=f"{path} {content}"))
        for path in paths
        for content in contents
    )
    return play(*written, decision("They are there."))


def together(steps: int = 1) -> Player:
    """The lead with four agents that share the work."""
    tasks = [{"task": f"PART{number}: {', '.join(paths)}"} for number, paths in enumerate(SHARES)]
    lead = play(decision("Four agents.", agents("work", tasks=tasks)), decision("All are there."))
    parts = {f"PART{number}": edits(*paths, steps=steps) for number, paths in enumerate(SHARES)}
    return casting(lead, parts)


def fill(folder: Path) -> None:
    """Write the files as they are before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in PLACES:
        (folder / path).write_text(f"{path} old\n")


def tree(folder: Path) -> dict[str, str]:
    """Return all files with their content."""
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}


def left_over(home: Path) -> list[str]:
    """Return the command lines of processes that still run with this home."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={home}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def timed(folder: Path, player: Player) -> float:
    """Return the seconds that one request takes."""
    fill(folder)
    with ModelServer(player, ANSWER_S) as server:
        began = time.monotonic()
        task = command(folder, "Renew all six files", "--mode", "auto")
        subprocess.run(task, env=environment(server), check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - began
    assert tree(folder) == {path: f"{path} new\n" for path in PLACES}
    return took


def compared(folder: Path, steps: int) -> None:
    """Print how long one agent takes, and four."""
    alone, four = timed(folder, casting(edits(*PLACES, steps=steps), {})), timed(folder, together(steps))
    each = f"six places, decisions for each: {steps}"
    print(f"{each}: one agent {alone:.1f} s, four agents {four:.1f} s ({four / alone:.0%})", flush=True)


def kill_once(folder: Path, home: Path, after_s: float) -> str:
    """Kill a request after some seconds, and start again. Return what was found, or the fault."""
    fill(folder)
    before, after = tree(folder), {path: f"{path} new\n" for path in PLACES}
    with ModelServer(together(), ANSWER_S) as server:
        task = command(folder, "Renew all six files", "--mode", "auto")
        process = subprocess.Popen(
            task, env=environment(server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        else:
            return "ended before"
    last_moment = time.monotonic() + ENDS_S
    while running := left_over(home):
        if time.monotonic() > last_moment:
            return f"FAULT: still runs: {running}"
        time.sleep(0.1)
    with ModelServer(casting(writes("never", ""), {})) as server:  # only recovery matters
        again = command(folder, "Anything?", "--mode", "plan")
        subprocess.run(again, env=environment(server), check=False, capture_output=True, timeout=120)
    left = list((home / ".local/state/duckflow/copies").glob("*"))
    found = {"before": before, "after": after}
    state = next((name for name, files in found.items() if files == tree(folder)), "FAULT: in between")
    return f"FAULT: copies are left: {left}" if left else state


def main() -> None:
    """Measure, kill, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        home, folder = Path(place) / "home", Path(place) / "work"
        home.mkdir()
        for name in [name for name in os.environ if name.startswith(("DUCKFLOW_", "XDG_"))]:
            del os.environ[name]
        os.environ["HOME"] = str(home)
        for steps in (2, 6, 10) if given.times else ():
            compared(folder, steps)
        longest = timed(folder, together()) * 1.1 if given.kills else 0
        moments = (chance.uniform(0, longest) for _ in range(given.kills))
        found = Counter(kill_once(folder, home, moment) for moment in moments)
    for what, times in found.most_common():
        print(f"{times:4} {what}")
    sys.exit(any(what.startswith("FAULT") for what in found))


if __name__ == "__main__":
    main()
