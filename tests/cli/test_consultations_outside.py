"""A consultation without a terminal: reported, kept, answered by another process (M3, I6, J5)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes import warm
from fakes.engine import action, decision, write_script

AGAIN = decision("", action("read_file", path="a.txt"), step="EXECUTION", task_profile="research")
POOR = {
    "requirement_scores": [{"requirement": "1", "score": 0.1, "evidence": []}],
    "missing_aspects": ["nothing is printed"],
    "quality_assessment": "poor",
    "completion_recommendation": False,
}


def run(folder: Path, *args: str, language: str = "en") -> subprocess.CompletedProcess[str]:
    return warm.run(
        [sys.executable, "-m", "duckflow", "run", *args, "--workspace", str(folder), "--mode", "edits"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "DUCKFLOW_LANGUAGE": language},
        timeout=300,
        check=False,
    )


def scripted(folder: Path, *answers: str | dict[str, Any]) -> tuple[str, str]:
    return "--model", f"scripted:{write_script(folder.parent / 's.jsonl', answers)}"


def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def of(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in found if event["type"] == kind]


def stopped_at_question(folder: Path) -> tuple[str, dict[str, Any]]:
    (folder / "a.txt").write_text("a\n", "utf-8")
    done = run(folder, "find it", "--json", *scripted(folder, *[AGAIN] * 12))
    assert done.returncode == 3, done.stderr
    found = events(done)
    (asked,) = of(found, "consultation_requested")
    return found[0]["session_id"], asked


def test_M3_I6_going_in_circles_ends_with_a_question_and_code_3(folder: Path):
    _, asked = stopped_at_question(folder)
    assert asked["kind"] in ("stagnation", "oracle")
    assert asked["message"].count("\n  ") >= len(asked["consultation"]["choices"])


def test_M3_I6_the_question_stays_until_it_is_answered_and_another_process_goes_on(folder: Path):
    session, asked = stopped_at_question(folder)
    again = run(folder, "--resume", session, *scripted(folder))
    assert again.returncode == 3
    assert "1. " in again.stderr
    number = asked["consultation"]["choices"].index("more_information") + 1
    script = scripted(folder, decision("It is in b.txt."))
    done = run(folder, "--resume", session, "--answer", f"{number} look at b.txt", "--json", *script)
    found = events(done)
    assert of(found, "consultation_answered")[0]["answer"] == {
        "choice": "more_information",
        "text": "look at b.txt",
    }
    assert of(found, "reply")[0]["text"] == "It is in b.txt."
    assert of(found, "request_finished")[-1]["request_id"]


def test_M3_J5_an_escalation_ends_with_code_1_and_can_be_accepted(folder: Path):
    written = decision(
        "", action("write_file", path="b.py", content="x = 1\n"), task_profile="file_operation"
    )
    poor = [{"for": "SatisfactionEvaluation", "text": json.dumps(POOR)}] * 3
    script = scripted(folder, written, *[decision("Done.")] * 3, *poor)
    done = run(folder, "print hello", "--json", *script)
    found = events(done)
    assert done.returncode == 1, done.stderr
    (asked,) = of(found, "consultation_requested")
    assert (asked["kind"], len(asked["consultation"]["choices"])) == ("escalation", 5)
    assert "nothing is printed" in asked["message"]
    session = found[0]["session_id"]
    assert run(folder, "--resume", session, *scripted(folder)).returncode == 1
    accepted = run(folder, "--resume", session, "--answer", "3", *scripted(folder))
    assert accepted.returncode == 0


@pytest.mark.parametrize("language", ["en", "ja"])
def test_J9_M4_text_mode_shows_how_it_comes_to_be_satisfied(folder: Path, language: str):
    written = decision(
        "", action("write_file", path="b.py", content="x = 1\n"), task_profile="file_operation"
    )
    good = {"requirement_scores": [{"requirement": "1", "score": 1.0, "evidence": ["e1"]}]}
    verdicts = [{"for": "SatisfactionEvaluation", "text": json.dumps(one)} for one in (POOR, good)]
    script = scripted(folder, written, decision("Done."), decision("Now it is done."), *verdicts)
    done = run(folder, "set x", *script, language=language)
    assert done.returncode == 0, done.stderr
    for mark in ("🎯", "⚖", "🔁"):
        assert mark in done.stderr
    assert "nothing is printed" in done.stderr
