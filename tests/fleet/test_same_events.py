"""A request through the fleet, with real workers."""

import json
from pathlib import Path
from typing import Any

from fakes.engine import action, decision, write_script
from fakes.repository import duckflow, git, make_repository

VARIES = {"at", "session_id", "workspace", "request_id", "model", "digest", "last_used"}


def plain(value: Any) -> Any:
    """Return an event without values that differ between runs and folders."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name not in VARIES}
    return [plain(part) for part in value] if isinstance(value, list) else value


def test_one_request_gives_the_same_events_as_without_the_fleet(tmp_path: Path):
    """M8: asked, answered, done; the same events in the same order, and a branch with the result."""
    repository = make_repository(tmp_path / "here" / "project")
    script = write_script(
        tmp_path / "script.jsonl",
        [
            # A plain question has no requirements, whose event would have no fixed place in the order.
            decision(
                "I write it.",
                action("write_file", path="hello.py", content="print('hello')\n"),
                task_profile="simple_question",
            ),
            decision("It is there."),
        ],
    )
    model = ["--model", f"scripted:{script}"]
    queued = duckflow("fleet", "submit", repository, "Create hello.py", *model)
    run = queued.stdout.split()[-1]
    assert duckflow("fleet", "worker", "--until-idle").returncode == 0
    unclear = duckflow("fleet", "answer", run, "hm")
    assert (unclear.returncode, "Traceback" in unclear.stderr) == (2, False)
    answered = duckflow("fleet", "answer", run, "yes")
    assert answered.returncode == 0, answered.stderr
    assert duckflow("fleet", "worker", "--until-idle").returncode == 0
    shown = json.loads(duckflow("fleet", "show", run, "--json").stdout)
    assert (shown["state"], shown["outcome"], shown["report"]["exit_code"]) == ("done", "done", 0)
    assert git(repository, "show", f"{shown['branch']}:hello.py") == "print('hello')"
    assert "+print('hello')" in shown["patch"]

    other = make_repository(tmp_path / "there" / "project")
    rest = write_script(tmp_path / "rest.jsonl", [decision("It is there.")])
    home = {"DUCKFLOW_STATE_DIR": str(tmp_path / "state")}  # no memories from the first run
    first = duckflow("run", "Create hello.py", "--json", "--workspace", other, *model, **home)
    session = json.loads(first.stdout.splitlines()[0])["session_id"]
    again = ["--answer", "yes", "--model", f"scripted:{rest}"]
    second = duckflow("run", "--json", "--workspace", other, "--resume", session, *again, **home)
    alone = [json.loads(line) for line in (first.stdout + second.stdout).splitlines()]
    assert plain(shown["events"]) == plain(alone)
