"""Done from facts: what `duckflow run` calls done, as a real process with a scripted model over HTTP."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fakes import warm
from fakes.engine import action, decision
from fakes.model_server import Fault, ModelServer
from fakes.plays import asked_for, play

CHAT = "general_chat"
BAD_CALC = "def add(a, b):\n    return a - b\n"
GOOD_CALC = "def add(a, b):\n    return a + b\n"


def run(
    folder: Path, server: ModelServer, task: str, *args: str, english: bool = True
) -> subprocess.CompletedProcess[str]:
    """`duckflow run` in a folder, with the model of a server."""
    locale = "C.UTF-8" if english else "ja_JP.UTF-8"
    return warm.run(
        [sys.executable, "-m", "duckflow", "run", task, "--model", "openai:any",
         "--workspace", str(folder), *args, *(() if "--mode" in args else ("--mode", "auto"))],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=110, check=False,
        env={**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", "LC_ALL": locale},
    )  # fmt: skip


def events(done: subprocess.CompletedProcess[str], kind: str) -> list[dict[str, Any]]:
    """The events of one kind that `--json` printed."""
    read = (json.loads(line) for line in done.stdout.splitlines())
    return [event for event in read if event["type"] == kind]


def writes(path: str, content: str) -> str:
    """A decision that writes a file and calls that done."""
    return decision("Written.", action("write_file", path=path, content=content), next_step="done")


def verdict(*evidence: str, score: float = 1.0) -> dict[str, Any]:
    """Answer of a judge that cites this evidence."""
    return {"requirement_scores": [{"requirement": "1", "score": score, "evidence": list(evidence)}]}


def asked(server: ModelServer, output: str) -> list[str]:
    """Questions of one kind that the model was asked."""
    return [
        json.dumps(one.body, ensure_ascii=False) for one in server.requests if asked_for(one.body) == output
    ]


def test_a_verification_command_runs_even_if_the_model_calls_its_work_a_chat(folder: Path):
    """J1: exit code 1 if it fails, whatever the profile; 0 and no judge if it passes."""
    replies = [decision("All done!", task_profile=CHAT)] * 5
    with ModelServer(play(*replies)) as server:
        failed = run(folder, server, "Make it work", "--verify", "false", "--json")
    assert failed.returncode == 1, failed.stderr
    assert [event["exit_code"] for event in events(failed, "action_finished")][:1] == [1]
    assert events(failed, "request_finished")[-1]["outcome"] == "not_satisfied"
    with ModelServer(play(*replies)) as server:
        passed = run(folder, server, "Hello", "--verify", "true", "--json")
    assert passed.returncode == 0, passed.stderr
    assert not asked(server, "SatisfactionEvaluation")


def test_without_a_judge_a_request_is_not_judged_and_that_is_said(folder: Path):
    """J2: evaluator down or unreadable: not judged, exit code 1, said in both languages and in stats."""
    for reply in (Fault(400, "down"), "What a fine day."):
        with ModelServer(play(*[writes("a.txt", "x\n")] * 2, SatisfactionEvaluation=[reply] * 20)) as server:
            done = run(folder, server, "Create a.txt")
            assert done.returncode == 1, done.stderr
            assert "Not evaluated" in done.stderr
            assert "Satisfied" not in done.stderr
            japanese = run(folder, server, "a.txt を作って", english=False)
            assert japanese.returncode == 1, japanese.stderr
            assert "未評価" in japanese.stderr
    stats = warm.run(
        [sys.executable, "-m", "duckflow", "stats", "--json"], capture_output=True, text=True, check=True
    )
    everything = next(one for one in map(json.loads, stats.stdout.splitlines()) if one["by"] == "all")
    assert (everything["requests"], everything["done"], everything["not_judged"]) == (4, 0.0, 1.0)
    assert everything["satisfaction"] is None


def test_without_a_judge_a_verification_command_or_tests_settle_it(folder: Path):
    """J2, J10: what was run decides if no model can."""
    down = {"SatisfactionEvaluation": [Fault(400, "down")] * 20}
    with ModelServer(play(writes("a.txt", "x\n"), **down)) as server:
        done = run(folder, server, "Create a.txt", "--verify", "test -e a.txt")
    assert done.returncode == 0, done.stderr
    (folder / "test_calc.py").write_text(
        "from calc import add\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    with ModelServer(play(writes("calc.py", GOOD_CALC), **down)) as server:
        done = run(folder, server, "Write calc.py")
    assert done.returncode == 0, done.stderr


def test_failed_checks_outweigh_praise_and_are_in_the_next_prompt(folder: Path):
    """J10: a test beside the code that fails is seen by the model, and the next attempt mends it."""
    (folder / "test_calc.py").write_text(
        "from calc import add\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    plan = {
        "name": "Add",
        "risk": "low",
        "success_criteria": [],
        "steps": [{"name": "x", "description": "y"}],
    }
    script = play(
        writes("calc.py", BAD_CALC),
        writes("calc.py", GOOD_CALC),
        SatisfactionEvaluation=[verdict("e1", "e2", "e3", "e4")] * 4,
        MissingInfoAnalysis=[{"missing": [{"what": "add", "priority": 1}]}] * 4,
        FailureAnalysis=[{"cause": "it subtracts", "fixes": []}] * 4,
        PlanDraft=[plan] * 4,
    )
    with ModelServer(script) as server:
        done = run(folder, server, "Write calc.py with add(a, b): add(20, 3) -> 23", "--json")
    assert done.returncode == 0, done.stderr
    first, last = events(done, "evaluation")
    assert not first["evaluation"]["done"]
    assert {one["name"]: one["state"] for one in first["results"] if one["kind"] != "diagnostic"} == {
        "add(20, 3) == 23": "failed",
        "test_calc.py": "failed",
    }
    assert all(one["evidence_id"].startswith("e") for one in first["results"])
    assert last["evaluation"]["done"]
    second_prompt = asked(server, "Decision")[1]
    assert "add(20, 3) == 23" in second_prompt
    assert "came to 17" in second_prompt


def test_evidence_of_failures_and_of_reading_supports_no_change(folder: Path):
    """J3: a judge who is content with a failed write, or with having read a file, is not believed."""
    (folder / "a.txt").write_text("old\n")
    lazy = decision("", action("read_file", path="a.txt"))
    failing = decision("", action("edit_file", path="a.txt", edits=[{"find": "nowhere", "replace": "x"}]))
    change = {"requirements": [{"requirement": "a.txt says new", "asks_for": "change"}]}
    for what, first in {"reading": lazy, "failure": failing}.items():
        done_now = [decision("I changed it.")] * 3
        script = play(
            *(first, *done_now), *[first, *done_now], RequirementList=[change] * 9,
            SatisfactionEvaluation=[verdict("e1", "e2")] * 9,
        )  # fmt: skip
        with ModelServer(script) as server:
            done = run(folder, server, "Change a.txt so that it says new", "--json")
        assert done.returncode != 0, (what, done.stderr)
        judged: Sequence[dict[str, Any]] = events(done, "evaluation")
        assert judged, what
        assert not any(one["evaluation"]["done"] for one in judged), what


def test_what_an_edit_breaks_comes_back_with_the_edit(folder: Path):
    """J10: quick diagnostics are in the next prompt, with the id of the edit."""
    script = play(
        decision("", action("write_file", path="a.py", content="def f():\n    return undefined_name\n")),
        writes("a.py", "def f():\n    return 1\n"),
    )
    with ModelServer(script) as server:
        done = run(folder, server, "Write a.py", "--json")
    assert done.returncode == 0, done.stderr
    second = asked(server, "Decision")[1]
    assert "undefined_name" in second.rpartition("[e1]")[2]
    assert "ruff" in second.rpartition("[e1]")[2]


def test_a_verification_command_of_the_settings_always_runs(folder: Path):
    """J1: `evaluation.verify` counts like `--verify`, which comes before it."""
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "duckflow"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text('[evaluation]\nverify = "false"\nmax_iterations = 1\n')
    replies = [decision("All done!", task_profile=CHAT)] * 3
    with ModelServer(play(*replies)) as server:
        assert run(folder, server, "Make it work").returncode == 1
        assert run(folder, server, "Make it work", "--verify", "true").returncode == 0


def test_a_move_that_can_not_be_made_never_asks(folder: Path):
    """A move onto an existing file, or onto itself, is told to the model; the user is not asked forever."""
    (folder / "a.txt").write_text("a")
    (folder / "b.txt").write_text("b")
    moves = [decision("", action("move_file", path="a.txt", to=to)) for to in ("b.txt", "a.txt")]
    with ModelServer(play(*moves, decision("It can't be moved.", next_step="pending_user"))) as server:
        done = run(folder, server, "Move a.txt", "--json", "--mode", "ask")
    assert [event["outcome"] for event in events(done, "action_finished")] == ["failed", "failed"], (
        done.stderr
    )
    assert not events(done, "approval_requested")
