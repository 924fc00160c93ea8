"""Measures start-up: help, version and the first request of `run`; also the time of a loop, and memory.

    .venv/bin/python bench/start.py [--rounds N]

Needs an otherwise idle machine. The model is a local server that answers at once.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DUCKFLOW = [sys.executable, "-m", "duckflow"]
LOOPS = 40
BESIDE = {
    "RequirementList": {"requirements": [{"requirement": "an answer", "priority": 1}]},
    "SatisfactionEvaluation": {
        "requirement_scores": [{"requirement": "1", "score": 1.0, "evidence": ["e1"]}],
        "completion_recommendation": True,
    },
}
"""Fixed, favourable answers to the side questions."""


class Model(BaseHTTPRequestHandler):
    """Model that lists files LOOPS times and then finishes. It records when each decision was requested."""

    protocol_version = "HTTP/1.1"
    arrivals: list[float] = []  # noqa: RUF012 - one server, one list
    loops = 0

    def log_message(self, *_):
        """Suppress the log."""

    def do_GET(self):
        """Report that the model has no metadata."""
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self):
        """Answer at once."""
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        output = asked.rpartition("Output: ")[2]
        answer = next((one for name, one in BESIDE.items() if output.startswith(name)), None)
        if answer is None:
            Model.arrivals.append(time.perf_counter())
            answer = self._decide(len(Model.arrivals))
        chunk = {"choices": [{"delta": {"content": json.dumps(answer)}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _decide(self, loop: int) -> dict[str, object]:
        if loop > Model.loops:
            return {"next_step": "done", "reply": "There is nothing."}
        look = {"operation": "file_ops.list_files", "args": {"pattern": f"*{loop}*"}}
        return {"next_step": "continue", "reply": f"loop {loop}", "actions": [look]}


def timed(command: list[str], **options) -> float:
    """Return the seconds that a command takes."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, **options)
    return time.perf_counter() - start


def median_of(rounds: int, command: list[str]) -> float:
    """Return the median of several runs after one warm-up run."""
    timed(command)
    return statistics.median(timed(command) for _ in range(rounds))


def run_once(address: str, loops: int, home: Path) -> tuple[float, float, float]:
    """Return seconds to the first request, milliseconds per loop and peak memory in megabytes."""
    Model.arrivals, Model.loops = [], loops
    environment = {**os.environ, "OPENAI_BASE_URL": f"{address}/v1", "HOME": str(home)}
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *DUCKFLOW,
            "run",
            "go",
            "--model",
            "openai:bench",
            "--max-loops",
            "100000",
            "--workspace",
            folder,
        ]
        start = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"duckflow run failed with status {status}")
    first = Model.arrivals[0] - start
    between = (Model.arrivals[-1] - Model.arrivals[0]) / max(len(Model.arrivals) - 1, 1)
    return first, between * 1000, used.ru_maxrss / 1024


def main() -> None:
    """Print a table."""
    rounds = argparse.ArgumentParser()
    rounds.add_argument("--rounds", type=int, default=9)
    count = rounds.parse_args().rounds
    python = median_of(count, [sys.executable, "-c", "pass"])
    typer = median_of(count, [sys.executable, "-c", "import typer"])
    bound = 3 * python + (typer - python)
    for flag in ("--help", "--version"):
        took = median_of(count, [*DUCKFLOW, flag])
        print(f"duckflow {flag:<10} {took * 1000:6.0f} ms   (bound {bound * 1000:.0f} ms)")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as home:
        run_once(address, 1, Path(home))
        firsts = [run_once(address, 1, Path(home))[0] for _ in range(count)]
        _, loop, memory = run_once(address, LOOPS, Path(home))
    print(f"first request       {statistics.median(firsts) * 1000:6.0f} ms   (bound 800 ms)")
    print(f"a loop              {loop:6.1f} ms   (bound 20 ms)")
    print(f"memory              {memory:6.0f} MB   (bound 120 MB)")


if __name__ == "__main__":
    main()
