"""`duckflow run --resume … --answer …` where there is nothing to answer, and what text mode says first."""

import os
import subprocess
import sys
from pathlib import Path

from fakes import warm
from fakes.engine import decision, write_script
from fakes.model_server import Answer, ModelServer

COMMAND = [sys.executable, "-m", "duckflow"]


def run(folder: Path, *args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return warm.run(
        [*COMMAND, "run", *args, "--workspace", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        timeout=300,
        check=False,
    )


def test_an_answer_to_no_question_is_wrong_usage_and_not_a_message(folder: Path):
    """M3: "yes" must never become a new request."""
    script = f"scripted:{write_script(folder.parent / 's.jsonl', [decision('Done.')])}"
    done = run(folder, "go", "--json", "--model", script)
    session = done.stdout.partition('"session_id": "')[2].partition('"')[0]
    answered = run(folder, "--resume", session, "--answer", "yes", "--model", script)
    assert answered.returncode == 2
    assert session in answered.stderr
    assert answered.stdout == ""


def test_text_mode_says_which_model_was_chosen_and_why_unless_it_was_named(folder: Path):
    """K3."""
    with ModelServer([Answer(decision("Hello.", task_profile="general_chat"))]) as server:
        address = {"OPENAI_BASE_URL": f"{server.url}/v1"}
        chosen = run(folder, "hi", env=address)
    assert chosen.stdout == "Hello.\n"
    assert "openai:" in chosen.stderr
    assert "OPENAI_BASE_URL" in chosen.stderr
    hello = [decision("Hello.", task_profile="general_chat")]
    script = f"scripted:{write_script(folder.parent / 's.jsonl', hello)}"
    assert run(folder, "hi", "--model", script).stderr == ""
