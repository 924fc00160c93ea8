"""Programming exercises for a small model: the bare model, Aider and Duckflow with the same weights.

    .venv/bin/python bench/exercises.py [FOLDER] [--modes bare,aider,first,candidates,verified] [--seeds 1]
        [--model FILE.gguf] [--only SLUG,SLUG] [--results exercises.json] [--limit SECONDS] [--jobs N]
        [--minutes N] [--fresh]

FOLDER (by default bench/small_exercises) has a folder for each exercise with `instructions.md` and
`canonical-data.json`, in the format of Exercism's problem specifications. The model gets an empty folder, the
instructions and the names of the functions with their arguments; the cases decide afterwards. Every run is a
new process, including the loading of the model. All modes of an exercise run one after the other, so that
they meet the same load.

    bare        the runtime alone: one prompt, greedy, the first code block of the answer
    aider       Aider with one message, on the runtime's HTTP server in a separate process
    first       Duckflow with one draft of the file
    candidates  Duckflow with default settings: drafts are chosen by what the program can run itself
    verified    Duckflow with the cases as its verifying command (`--verify`), as if tests were written first

Seed 0 is greedy; other seeds make sense only for `bare`. Results that exist already are not measured again
(except with `--fresh`), so an interrupted run can be resumed. The table compares only exercises that ran in
every mode. With `--jobs`, several exercises run at once, each on separate cores. With `--minutes`, no
exercise starts after that time. Needs `duckflow model install` or a model's file; Aider is installed in
`.bench` on first use. Writes bench/results/exercises.json, from which `bench/page.py` makes
docs/benchmarks.md.
"""

import argparse
import base64
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from peers.agents import AIDER_QUIET, HOME, install_aider, peer_environment
from peers.results import write_result

MODES = ("bare", "aider", "candidates")
DUCKFLOW = ("first", "candidates", "verified")
OWN_EXERCISES = Path(__file__).parent / "small_exercises"
LIMIT_S = 600.0
SERVER = """
import json, sys, xllamacpp
asked = json.loads(sys.stdin.readline())
p = xllamacpp.CommonParams()
p.model.path, p.n_ctx, p.n_parallel, p.port, p.verbosity = asked["model"], 8192, 1, 0, -1
p.hostnames = ["127.0.0.1"]
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = asked["threads"]
server = xllamacpp.Server(p)
"""
BARE = f"""{SERVER}
said = server.handle_chat_completions({{
    "messages": [{{"role": "user", "content": asked["prompt"]}}], "max_tokens": 2048,
    "temperature": 0.8 if asked["seed"] else 0.0, "seed": asked["seed"]}})
print(json.dumps(said if isinstance(said, dict) else json.loads(said)))
"""
OVER_HTTP = f"""{SERVER}
print(server.listening_address, flush=True)
sys.stdin.read()
"""
CASES = """
import json, sys
sys.path.insert(0, ".")
failed = []
import solution
for name, arguments, expected in json.loads(CASES_TEXT):
    error = expected.get("error") if isinstance(expected, dict) and len(expected) == 1 else None
    try:
        got = getattr(solution, name)(*arguments)
        seen = json.loads(json.dumps(got, default=lambda value: sorted(value)))
        same = abs(seen - expected) < 0.011 if isinstance(expected, float) else seen == expected
        if error is not None or not same:
            failed.append(f"{name}({', '.join(map(repr, arguments))}) gives {seen!r}, not {expected!r}")
    except Exception as exc:
        if error is None or not isinstance(exc, ValueError):
            failed.append(f"{name}({', '.join(map(repr, arguments))}) raises {exc!r}, not {expected!r}")
for line in failed[:3]:
    print("FAILED", line[:300])
print(f"{len(failed)} failed")
sys.exit(bool(failed))
"""


def cases_of(folder: Path) -> list[tuple[str, dict[str, Any], Any]]:
    """Return the cases of an exercise: function, arguments by name, expected value."""
    data = json.loads((folder / "canonical-data.json").read_text("utf-8"))
    found = list(_flat(data["cases"]))
    replaced = {case.get("reimplements") for case in found}
    return [
        (_snake(case["property"]), case["input"], case["expected"])
        for case in found
        if case["uuid"] not in replaced
    ]


def request_of(folder: Path) -> str:
    """Return the prompt: the instructions, and the functions with their arguments."""
    functions = {name: list(map(_snake, arguments)) for name, arguments, _ in reversed(cases_of(folder))}
    listed = "\n".join(f"- `{name}({', '.join(words)})`" for name, words in reversed(functions.items()))
    text = (folder / "instructions.md").read_text("utf-8").strip()
    return f"{text}\n\nWrite solution.py in Python with:\n{listed}\nInvalid input raises ValueError."


def checker_of(folder: Path) -> str:
    """Return a program that runs the cases against solution.py in the current folder."""
    cases = [(name, list(arguments.values()), expected) for name, arguments, expected in cases_of(folder)]
    return f"CASES_TEXT = {json.dumps(cases)!r}\n{CASES}"


def passes(solution: Path, checker: str) -> bool:
    """Return True if a solution passes all cases."""
    if not solution.is_file():
        return False
    command = [sys.executable, "-c", checker]
    try:
        return (
            subprocess.run(
                command, cwd=solution.parent, capture_output=True, timeout=60, check=False
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


def run_bare(folder: Path, work: Path, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Get one answer from the model alone."""
    asked = {
        "model": str(options.model),
        "prompt": request_of(folder),
        "threads": options.threads,
        "seed": seed,
    }
    done = subprocess.run(
        [sys.executable, "-c", BARE],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=options.limit,
        check=False,
    )
    if done.returncode:
        return {"exit": done.returncode, "calls": [], "said": done.stderr[-500:]}
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    said = answer["choices"][0]["message"]["content"]
    block = re.search(r"```[a-z]*\n(.*?)(?:\n```|\Z)", said, re.DOTALL)
    (work / "solution.py").write_text(block[1] if block else said, "utf-8")
    return {"exit": done.returncode, "calls": [answer["usage"]]}


def run_aider(folder: Path, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Send one message to Aider, which may rewrite the file as often as it likes."""
    asked = json.dumps({"model": str(options.model), "threads": options.threads})
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", OVER_HTTP], stdin=pipe, stdout=pipe, text=True) as server:
        try:
            assert server.stdin
            assert server.stdout
            server.stdin.write(f"{asked}\n")
            server.stdin.flush()
            url = f"{server.stdout.readline().strip()}/v1"
            command = [str(options.aider), "--model", "openai/local", "--edit-format", "whole", *AIDER_QUIET]
            command.append("--no-detect-urls")
            done = subprocess.run(
                [*command, "--message", request_of(folder), "solution.py"],
                cwd=work,
                env=peer_environment(url, work.parent),
                capture_output=True,
                text=True,
                timeout=options.limit,
                check=False,
            )
        finally:
            server.kill()
    return {"exit": done.returncode, "calls": [], "said": (done.stdout + done.stderr)[-1500:]}


def run_duckflow(folder: Path, work: Path, mode: str, options: argparse.Namespace) -> dict[str, Any]:
    """Send the same message to Duckflow. It starts with empty state but keeps cached facts about the
    model."""
    env = {
        **os.environ,
        "DUCKFLOW_STATE_DIR": f"{work}.state",
        "DUCKFLOW_LLM__EMBEDDED__THREADS": str(options.threads),
        "DUCKFLOW_LLM__TIME_LIMIT_S": str(options.limit),
    }
    command = [sys.executable, "-m", "duckflow", "run", request_of(folder), "--mode", "edits", "--json"]
    command += ["--workspace", str(work), "--model", f"embedded:{options.model}"]
    if mode == "first":
        env |= {"DUCKFLOW_LLM__CANDIDATES": "1", "DUCKFLOW_EVALUATION__MAX_ITERATIONS": "1"}
    if mode == "verified":
        packed = base64.b64encode(zlib.compress(checker_of(folder).encode(), 9)).decode()
        program = f"import base64, zlib; exec(zlib.decompress(base64.b64decode('{packed}')))"
        command += ["--verify", shlex.join(["python3", "-c", program])]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=options.limit, check=False
    )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    calls = [{"for": event.get("output"), **event["tokens"]} for event in events if event["type"] == "usage"]
    asks = [
        event["type"] for event in events if event["type"] in ("consultation_requested", "approval_requested")
    ]
    return {"exit": done.returncode, "calls": calls, "asked": asks, "said": done.stderr[-500:]}


def run_one(folder: Path, mode: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run one exercise in one mode and judge it by its cases."""
    with tempfile.TemporaryDirectory() as room:
        work = Path(room) / "work"
        work.mkdir()
        start = time.perf_counter()
        try:
            if mode == "bare":
                run = run_bare(folder, work, seed, options)
            elif mode == "aider":
                run = run_aider(folder, work, options)
            else:
                run = run_duckflow(folder, work, mode, options)
        except subprocess.TimeoutExpired:
            run = {"exit": "timeout", "calls": []}
        took = time.perf_counter() - start
        solution = work / "solution.py"
        good = passes(solution, checker_of(folder))
        text = solution.read_text("utf-8", "replace") if solution.is_file() else None
    return {
        "exercise": folder.name,
        "mode": mode,
        "seed": seed,
        "good": good,
        "seconds": round(took, 1),
        **run,
        "file": text,
    }


HEADS = (
    "",
    "exercises",
    "right",
    "median s",
    "median of times the bare model's",
    "stopped",
    "right, yet asked",
)
NAMES = {
    "bare": "bare model",
    "aider": "Aider",
    "first": "Duckflow, one draft",
    "candidates": "Duckflow",
    "verified": "Duckflow, with a verifying command",
}


def summary(results: list[dict[str, Any]], modes: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of the table, for the exercises that ran in every mode."""
    ran = {mode: {one["exercise"] for one in results if one["mode"] == mode} for mode in modes}
    common = set[str].intersection(*ran.values())
    results = [one for one in results if one["exercise"] in common]
    bare = {one["exercise"]: one["seconds"] for one in results if (one["mode"], one["seed"]) == ("bare", 0)}
    for mode in modes:
        for seed in sorted({one["seed"] for one in results if one["mode"] == mode}):
            runs = [one for one in results if (one["mode"], one["seed"]) == (mode, seed)]
            right = sum(one["good"] for one in runs)
            ratios = [one["seconds"] / bare[one["exercise"]] for one in runs if one["exercise"] in bare]
            asked = sum(one["good"] and one["exit"] not in (0, "timeout") for one in runs)
            stopped = sum(one["exit"] == "timeout" for one in runs)
            middle = statistics.median(one["seconds"] for one in runs)
            times = f"{statistics.median(ratios):.2f}" if ratios else ""
            title = f"{NAMES[mode]}, seed {seed}" if seed else NAMES[mode]
            cells = (len(runs), right, f"{middle:.1f}", times, stopped, asked if mode in DUCKFLOW else "")
            yield [title, *map(str, cells)]


def _flat(cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for case in cases:
        if "cases" in case:
            yield from _flat(case["cases"])
        else:
            yield case


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _line(one: dict[str, Any]) -> str:
    verdict = "right" if one["good"] else "wrong"
    return f"{one['exercise']:<24}{one['mode']:<12}{verdict:<7}{one['seconds']:>7.1f} s"


def keep(file: Path, results: list[dict[str, Any]]) -> None:
    """Write the results atomically."""
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(results, indent=1), "utf-8")
    draft.replace(file)


def side_by_side(jobs: int, work: Callable[[Any], None], over: Sequence[Any]) -> None:
    """Run the work for each item, `jobs` at a time, each on separate cores."""
    cores = sorted(os.sched_getaffinity(0))
    each = max(1, len(cores) // jobs)
    free = [cores[start : start + each] for start in range(0, each * jobs, each)]

    def settle() -> None:
        os.sched_setaffinity(0, free.pop() or cores)

    with ThreadPoolExecutor(jobs, initializer=settle) as pool:
        list(pool.map(work, over))


def installed() -> Path:
    """Return the file of the configured model."""
    command = [sys.executable, "-m", "duckflow", "model", "path"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=OWN_EXERCISES)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=float, default=LIMIT_S)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--results", type=Path, default=HOME / "exercises.json")
    options = parser.parse_args()
    begin = time.monotonic()
    options.model = (options.model or installed()).resolve()
    results: list[dict[str, Any]] = []
    if options.results.exists() and not options.fresh:
        results = json.loads(options.results.read_text("utf-8"))
    known = {(one["exercise"], one["mode"], one["seed"]) for one in results}
    modes = options.modes.split(",")
    if "aider" in modes and (version := install_aider()):
        options.aider = HOME / "aider-chat" / "bin" / "aider"
        NAMES["aider"] = f"Aider {version}"
    elif "aider" in modes:
        print("Aider can't be installed here; measuring without it.", file=sys.stderr)
        modes.remove("aider")
    chosen = [name for name in options.only.split(",") if name]
    folders = sorted(path.parent for path in options.folder.glob("*/canonical-data.json"))
    options.threads = options.threads or max(1, len(os.sched_getaffinity(0)) // options.jobs)
    kept = threading.Lock()

    def exercise(folder: Path) -> None:
        for mode in modes:
            if time.monotonic() - begin > options.minutes * 60:
                return
            for seed in range(options.seeds if mode == "bare" else 1):
                if (folder.name, mode, seed) in known:
                    continue
                one = run_one(folder, mode, seed, options)
                with kept:
                    results.append(one)
                    keep(options.results, results)
                    print(_line(one), flush=True)

    side_by_side(options.jobs, exercise, [one for one in folders if not chosen or one.name in chosen])
    rows = list(summary(results, modes))
    write_result("exercises", {"model": options.model.name, "heads": HEADS, "rows": rows})
    print(*(" | ".join(row) for row in (HEADS, *rows)), sep="\n")


if __name__ == "__main__":
    main()
