"""Best of three: `agent.work` with `keep: "best"` on tasks where single attempts of a model differ (O2).

    git clone https://github.com/jamesmurdza/humaneval-results FOLDER
    .venv/bin/python bench/best_of.py FOLDER [--tasks 10] [--seed 1] [--jobs 1]

FOLDER has what CodeLlama-34b, GPT-3.5 and GPT-4 wrote for the tasks of HumanEval: one Markdown file for each
model and task, with the prompt, the unit tests and ten runs. The first three runs are the attempts. A task
counts if, judged by all of its assertions, some of the three are right and some are wrong; `--tasks` of these
are drawn. The project gets half of the assertions of a task, also drawn, as `test_solution.py`. Then
`duckflow run` works on the prompt: a scripted lead calls `agent.work`, and each of its three agents writes
one attempt and calls it done, whatever its checks say. The evaluator is content with everything, and where
several attempts are equally good it takes the first. Afterwards all assertions judge the file that was kept.

The attempts of the models are executed without a sandbox to judge them.
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fakes.agents_at_work import agents, casting, command, environment, of_type
from fakes.engine import action, decision
from fakes.model_server import ModelServer, Reply
from fakes.plays import asked_for, play

TRIES = 3
BOUND = 0.9
FEWEST_CASES = 4
JUDGED_S = 60.0
LIMIT_S = 900.0
WRITES = "I write this attempt."
MARK = "ONETASK"
_BLOCK = re.compile(r"^## ([\w ]+)\n(?:Tokens: \d+\n)?```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"^### \S+ Run \d+\n.*?^Result: (\w+)\n```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


class Task(NamedTuple):
    """A task with three attempts that a model made at it."""

    name: str
    request: str
    function: str
    cases: tuple[str, ...]
    """Assertions about `candidate`."""
    attempts: tuple[str, ...]


class Outcome(NamedTuple):
    """Result for one task. Attempts are named by their places."""

    task: str
    right: tuple[bool, ...]
    accepted: tuple[int, ...]
    """Attempts that are done according to their agents' checks."""
    kept: int | None
    asked: int
    """Number of attempts among which the evaluator chose; 0 if it was not asked."""
    seconds: float

    @property
    def good(self) -> bool:
        """True if the attempt that was kept is right."""
        return self.kept is not None and self.right[self.kept]


def read_task(file: Path) -> Task | None:
    """Read a task. None if its runs do not differ, or if its cases are few or no plain assertions."""
    head, _, runs = file.read_text("utf-8").partition("## Runs\n")
    blocks = dict(_BLOCK.findall(head))
    found = _RUN.findall(runs)[:TRIES]
    if len({result for result, _ in found}) < 2:
        return None
    tests = blocks.get("Unit tests", "")
    check = next((one for one in ast.parse(tests).body if isinstance(one, ast.FunctionDef)), None)
    if check is None or not all(isinstance(one, ast.Assert) for one in check.body):
        return None
    told = (
        one for one in check.body if isinstance(one, ast.Assert) and not isinstance(one.test, ast.Constant)
    )
    cases = tuple(f"assert {ast.unparse(one.test)}" for one in told)
    function = re.findall(r"^def (\w+)", blocks["Prompt"], re.MULTILINE)[-1]
    request = f"Write {function} in solution.py:\n\n```python\n{blocks['Prompt']}\n```"
    name = f"{file.parent.name} {file.stem} {function}"
    attempts = tuple(text for _, text in found)
    return Task(name, request, function, cases, attempts) if len(cases) >= FEWEST_CASES else None


def is_right(attempt: str, task: Task) -> bool:
    """Judge an attempt by all cases."""
    program = "\n".join((attempt, f"candidate = {task.function}", *task.cases))
    with tempfile.TemporaryDirectory() as place:
        judged = [sys.executable, "-c", program]
        try:
            done = subprocess.run(judged, cwd=place, capture_output=True, timeout=JUDGED_S, check=False)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


def half(task: Task, seed: int) -> str:
    """Return a test file with half of the cases."""
    chosen = set(random.Random(f"{seed} {task.name}").sample(task.cases, len(task.cases) // 2))
    shown = [case for case in task.cases if case in chosen]
    tests = (f"def test_{number}():\n    {case}\n" for number, case in enumerate(shown, start=1))
    return "\n\n".join((f"from solution import {task.function} as candidate\n", *tests))


class Cast:
    """Plays the lead, three agents one after the other, and the evaluator."""

    def __init__(self, task: Task) -> None:
        self._attempts = list(task.attempts)
        self.asked = 0
        work = agents("work", tasks=[f"{MARK}: {task.request}"], keep="best", tries=TRIES)
        self.play = casting(
            play(decision("Three tries.", work), decision("It is there.")), {MARK: self._agent}
        )

    def __call__(self, body: dict[str, Any]) -> Reply:
        """Answer one request."""
        if asked_for(body) == "AttemptChoice":
            self.asked = len(set(re.findall(r"Attempt (\d+):", json.dumps(body["messages"]))))
            return play(AttemptChoice=[{"best": 1}])(body)
        return self.play(body)

    def _agent(self, body: dict[str, Any]) -> Reply:
        """Agents are told apart by their order; each writes once."""
        if asked_for(body) != "Decision" or WRITES in json.dumps(body):
            return play(decision("It is there."))(body)
        write = action("write_file", path="solution.py", content=self._attempts.pop(0))
        return play(decision(WRITES, write))(body)


def run(task: Task, seed: int, place: Path) -> Outcome:
    """Let Duckflow choose among the attempts of a task."""
    folder, home = place / "work", place / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "test_solution.py").write_text(half(task, seed), "utf-8")
    cast, began = Cast(task), time.monotonic()
    with ModelServer(cast) as server:
        own = {"HOME": str(home), "DUCKFLOW_AGENTS__PARALLEL": "1"}
        done = subprocess.run(
            command(folder, task.request, "--mode", "auto"),
            env={**environment(server), **own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ended = of_type(events, "agent_ended")
    told = "".join(
        one["text"] for one in of_type(events, "action_finished") if one["operation"] == "agent.work"
    )
    chosen = re.search(r"^try (\d) was chosen", told, re.MULTILINE)
    kept = int(chosen[1]) - 1 if chosen else None
    solution = folder / "solution.py"
    written = solution.read_text("utf-8") if solution.is_file() else ""
    assert kept is None or written.strip() == task.attempts[kept].strip(), (task.name, kept, written)
    return Outcome(
        task.name,
        tuple(is_right(one, task) for one in task.attempts),
        tuple(place for place, one in enumerate(ended) if one["outcome"] == "done"),
        kept,
        cast.asked,
        round(time.monotonic() - began, 1),
    )


def differing(folder: Path) -> Iterator[Task]:
    """Yield the tasks in which some attempts are right and some are wrong."""
    for file in sorted(folder.rglob("*.md"), key=str):
        task = read_task(file) if file.stem.isdigit() else None
        if task and len({is_right(one, task) for one in task.attempts}) > 1:
            yield task


def summary(done: Sequence[Outcome]) -> Iterator[str]:
    """Yield the totals."""
    count = len(done)
    settled = [one for one in done if one.good and all(one.right[place] for place in one.accepted)]
    yield f"a right attempt kept: {sum(one.good for one in done)} of {count}"
    yield f"the same, whatever the evaluator says: {len(settled)} of {count}"
    yield f"the first attempt right: {sum(one.right[0] for one in done)} of {count}"
    yield f"a random attempt right: {sum(sum(one.right) / len(one.right) for one in done):.1f} of {count}"
    yield f"evaluator asked: {sum(one.asked > 0 for one in done)} of {count}"


def main() -> None:
    """Run the tasks and print the choices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(("DUCKFLOW_", "XDG_"))]:
        del os.environ[name]
    tasks = list(differing(given.folder))
    random.Random(given.seed).shuffle(tasks)
    print(f"tasks whose attempts differ: {len(tasks)}; attempts are numbered from 0", flush=True)

    def work(task: Task) -> Outcome:
        with tempfile.TemporaryDirectory() as place:
            one = run(task, given.seed, Path(place))
        right = [place for place, good in enumerate(one.right) if good]
        choice = f"evaluator chose among {one.asked}" if one.asked else "checks chose"
        verdict = "right" if one.good else "WRONG"
        told = f"right {right}, accepted {list(one.accepted)}, kept {one.kept}: {verdict}; {choice}"
        print(f"{one.task:<50} {told} ({one.seconds:.0f} s)", flush=True)
        return one

    with ThreadPoolExecutor(given.jobs) as pool:
        done = list(pool.map(work, tasks[: given.tasks]))
    print(*summary(done), sep="\n")
    sys.exit(sum(one.good for one in done) < BOUND * len(done))


if __name__ == "__main__":
    main()
