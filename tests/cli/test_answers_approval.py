"""`duckflow run --resume … --answer …`: the four answers to an approval, from outside (M3, G1)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fakes import warm
from fakes.engine import action, decision, write_script

COMMAND = [sys.executable, "-m", "duckflow"]
WRITE = decision("", action("write_file", path="src/a.txt", content="model\n"))
MORE = decision("", action("write_file", path="src/b.txt", content="more\n"))


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return warm.run(
        [*COMMAND, "run", *args, "--workspace", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=dict(os.environ),
        timeout=300,
        check=False,
    )


def ask(folder: Path, *answers: str) -> tuple[str, str, dict]:
    """A session that waits for an answer: its id, its model, and the question."""
    model = f"scripted:{write_script(folder.parent / 's.jsonl', [WRITE, *answers])}"
    asked = run(folder, "go", "--json", "--model", model)
    assert asked.returncode == 3, asked.stderr
    events = [json.loads(line) for line in asked.stdout.splitlines()]
    (question,) = [event for event in events if event["type"] == "approval_requested"]
    return events[0]["session_id"], model, question["approval"]


@pytest.mark.parametrize(
    ("answer", "code", "content"),
    [
        ("yes", 0, "model\n"),
        ("always", 0, "model\n"),
        ("edit:mine\n", 0, "mine\n"),
        ("no, not there", 0, None),
        ("", 3, None),
        ("yes but smaller", 3, None),
        ("はい、お願いします", 0, "model\n"),
    ],
)
def test_each_answer_does_what_it_says(folder: Path, answer: str, code: int, content: str | None):
    session, model, question = ask(folder)
    write_script(folder.parent / "s.jsonl", [decision("Done.")])
    assert question["kind"] == {"what": "edits", "scope": "src"}
    done = run(folder, "--resume", session, "--answer", answer, "--model", model)
    assert done.returncode == code, done.stderr
    target = folder / "src/a.txt"
    assert (target.read_text() if target.exists() else None) == content


def test_always_holds_for_the_rest_of_that_run_and_not_for_the_next(folder: Path):
    session, model, _ = ask(folder)
    write_script(folder.parent / "s.jsonl", [MORE, decision("Done.")])
    assert run(folder, "--resume", session, "--answer", "always", "--model", model).returncode == 0
    assert (folder / "src/b.txt").exists()
    write_script(folder.parent / "s.jsonl", [WRITE.replace("model", "again")])
    assert run(folder, "and again", "--resume", session, "--model", model).returncode == 3


def test_what_can_not_be_edited_is_wrong_usage_and_the_question_stays(folder: Path):
    (folder / "src").mkdir()
    (folder / "src/a.txt").write_text("x\n")
    delete = decision("", action("delete_file", path="src/a.txt"))
    model = f"scripted:{write_script(folder.parent / 's.jsonl', [delete])}"
    asked = run(folder, "go", "--json", "--model", model)
    session = json.loads(asked.stdout.splitlines()[0])["session_id"]
    assert run(folder, "--resume", session, "--answer", "edit:x", "--model", model).returncode == 2
    write_script(folder.parent / "s.jsonl", [decision("Done.")])
    assert run(folder, "--resume", session, "--answer", "yes", "--model", model).returncode == 0
    assert not (folder / "src/a.txt").exists()


def test_G1_a_low_risk_is_printed_in_a_few_lines_before_its_difference(folder: Path):
    model = f"scripted:{write_script(folder.parent / 's.jsonl', [WRITE])}"
    shown = run(folder, "go", "--model", model).stderr
    question, _, rest = shown.partition("--- /dev/null\n+++ b/src/a.txt\n")
    assert question.endswith(
        "🦆 Write src/a.txt?\n"
        "  +1 −0 · low risk · /undo reverts it\n"
        "  I'm asking because this mode asks before such a change\n"
    )
    difference, _, after = rest.partition("+model\n")
    assert difference.startswith("@@")
    assert "--answer yes" in after


def test_SAFETY_6_without_a_terminal_a_folder_is_untrusted_unless_told(folder: Path):
    (folder / "duckflow.toml").write_text('mode = "plan"\n')
    model = f"scripted:{write_script(folder.parent / 's.jsonl', [WRITE, decision('Done.')])}"
    asked = run(folder, "go", "--mode", "ask", "--model", model)
    assert asked.returncode == 3
    assert "duckflow.toml" in asked.stderr
