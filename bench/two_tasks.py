"""Runs the two small tasks that a new user tries: on the embedded model, and over HTTP on its server.

    .venv/bin/python bench/two_tasks.py [--over embedded|http|both]

Needs `duckflow model install`. Prints the result and time of each task, and fails if one fails.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DUCKFLOW = [sys.executable, "-m", "duckflow"]
CHECK_STACK = "from stack import Stack; s = Stack(); assert s.is_empty(); s.push(1); s.push(2); assert s.pop() == 2; assert not s.is_empty(); print('good')"  # noqa: E501
TASKS = (
    ("Create hello.py that prints hello", ["hello.py"], "hello"),
    ("Create stack.py with a class Stack that has push, pop and is_empty", ["-c", CHECK_STACK], "good"),
)
SERVER = """
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.port, p.verbosity = sys.argv[1], 8192, 1, 0, -1
p.hostnames = ["127.0.0.1"]
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
time.sleep(3600)
"""


@contextmanager
def local_server() -> Iterator[str]:
    """Start the embedded runtime's own HTTP server with the installed weights."""
    found = subprocess.run([*DUCKFLOW, "model", "path"], capture_output=True, text=True, check=True)
    command = [sys.executable, "-c", SERVER, found.stdout.strip()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def try_tasks(title: str, flags: list[str], env: dict[str, str]) -> bool:
    """Run both tasks and return True if both succeeded."""
    fine = True
    for task, check, wanted in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            command = [*DUCKFLOW, "run", task, "--mode", "edits", "--workspace", folder, *flags]
            done = subprocess.run(
                command, env={**os.environ, **env}, capture_output=True, text=True, check=False
            )
            took = time.perf_counter() - start
            seen = subprocess.run(
                [sys.executable, *check], cwd=Path(folder), capture_output=True, text=True, check=False
            )
        good = done.returncode == 0 and seen.stdout.strip() == wanted
        fine = fine and good
        print(f"{title:<10} {'ok  ' if good else 'FAIL'} {took:5.1f} s  {task}")
        if not good:
            print(done.stderr, seen.stdout, seen.stderr, sep="\n")
    return fine


def main() -> None:
    """Run the tasks in the chosen ways."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--over", choices=["embedded", "http", "both"], default="both")
    over = parser.parse_args().over
    fine = True
    if over in ("embedded", "both"):
        fine &= try_tasks("embedded", ["--model", "embedded"], {})
    if over in ("http", "both"):
        with local_server() as address:
            fine &= try_tasks("http", ["--model", "openai:local"], {"OPENAI_BASE_URL": f"{address}/v1"})
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
