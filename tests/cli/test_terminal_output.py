"""SAFETY 19: whatever a command prints on a terminal is harmless; through a pipe it stays as it is."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

from fakes import warm
from fakes.engine import action, decision, write_script
from fakes.terminal import Terminal

COMMAND = [sys.executable, "-m", "duckflow"]
STEERING = "\x1b[2J\x1b]0;mine\x07\x9b1A\u202egood"
HARMFUL = ("\x1b[2J", "\x1b]0;", "\x9b", "\u202e", "\x07")


def test_SAFETY_19_nothing_that_is_printed_steers_a_terminal(folder: Path):
    write = decision("", action("write_file", path=f"a{STEERING[-5:]}.txt", content=f"{STEERING}\n"))
    script = write_script(folder.parent / "s.jsonl", [decision(STEERING, task_profile="general_chat"), write])
    model = ["--model", f"scripted:{script}", "--workspace", str(folder)]
    piped = warm.run([*COMMAND, "run", f"say {STEERING}", *model, "--json"], capture_output=True, check=False)
    session = json.loads(piped.stdout.splitlines()[0])["session_id"]
    commands = {
        "run": ["run", f"write {STEERING}", "--resume", session, *model],
        "list": ["sessions", "list"],
        "list as JSON": ["sessions", "list", "--json"],
        "show": ["sessions", "show", session],
        "show as JSON": ["sessions", "show", session, "--json"],
        "replay": ["sessions", "show", session, "--replay", "--speed", "0"],
        "export": ["sessions", "export", session],
        "audit": ["audit", "show"],
        "error": ["sessions", "show", STEERING],
        "usage": ["run", f"--{STEERING}"],
    }
    wrong = {}
    for name, arguments in commands.items():
        with Terminal([*COMMAND, *arguments], env={"NO_COLOR": "1"}, warm=True) as terminal:
            terminal.wait_for_end()
            printed = terminal.raw.decode("utf-8", "replace")
            found = [one for one in HARMFUL if one in printed]
            if found or not printed.strip():
                wrong[name] = (found, printed)
    assert not wrong


def test_SAFETY_19_through_a_pipe_output_stays_as_it_is(folder: Path):
    script = write_script(folder.parent / "s.jsonl", [decision(STEERING, task_profile="general_chat")])
    done = warm.run(
        [*COMMAND, "run", "hi", "--model", f"scripted:{script}", "--workspace", str(folder)],
        capture_output=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.stdout.decode() == f"{STEERING}\n"


def test_M3_streams_that_are_closed_or_can_not_say_it_end_nothing(folder: Path):
    """A locale without Japanese, and a starter who closed standard input and output."""
    script = write_script(folder.parent / "s.jsonl", [decision("はい", task_profile="general_chat")])
    words = [*COMMAND, "run", "hi", "--model", f"scripted:{script}", "--workspace", str(folder)]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for command, printed in (
        (words, b"??\n"),
        ([*words, "--json"], b'"\\u306f\\u3044"'),
        (["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words], b""),
        (["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *words[5:]], b"Duckflow"),
    ):
        done = subprocess.run(command, capture_output=True, env=ascii_only, check=False)
        assert done.returncode == 0, done.stderr
        assert printed in done.stdout


def test_M3_a_stop_and_go_while_the_pipe_is_full_loses_nothing_of_a_line(folder: Path):
    """Ctrl-Z and `fg` next to a slow reader, in an environment that asks Python for unbuffered output."""
    write = decision("", action("write_file", path="a.txt", content="x" * 200_000))
    script = write_script(folder.parent / "s.jsonl", [write, decision("Done.")])
    command = [*COMMAND, "run", "write a.txt", "--model", f"scripted:{script}", "--workspace", str(folder)]
    with subprocess.Popen(
        [*command, "--json", "--mode", "edits"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as program:
        assert program.stdout
        waiting = bytearray(4)
        while int.from_bytes(waiting, sys.byteorder) < 50_000 and program.poll() is None:
            fcntl.ioctl(program.stdout, termios.FIONREAD, waiting)
        program.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, program.pid, os.WSTOPPED)
        program.send_signal(signal.SIGCONT)
        lines = program.stdout.read().splitlines()
    shown = [json.loads(line) for line in lines]
    assert any("x" * 200_000 in line.decode() for line in lines)
    assert [one["seq"] for one in shown] == list(range(1, len(shown) + 1))
