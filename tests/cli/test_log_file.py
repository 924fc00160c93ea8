"""The log goes to the user's log file, without secrets, and never onto the screen (I8)."""

import os
import stat
import sys
from pathlib import Path

from duckflow.config.places import state_dir
from fakes import warm
from fakes.engine import action, decision, write_script


def test_I8_a_request_leaves_its_start_its_course_and_its_end_in_the_log(folder: Path, tmp_path: Path):
    write = decision("", action("write_file", path="a.txt", content="a\n"), task_profile="file_operation")
    script = write_script(tmp_path / "s.jsonl", [write, decision("Done.", confidence=0.9)])
    command = [
        sys.executable,
        "-m",
        "duckflow",
        "run",
        "go",
        "--mode",
        "edits",
        "--model",
        f"scripted:{script}",
    ]
    done = warm.run(command, cwd=folder, capture_output=True, text=True, check=True, env=os.environ)
    log = state_dir() / "duckflow.log"
    written = log.read_text("utf-8")
    assert "limit 9 for file_operation (base 8)" in written
    assert "complexity 0.02 (low)" in written
    assert "stamina fell" in written
    assert "used 2/9 loops" in written
    assert "outcome: done" in written
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "limit 9" not in done.stdout + done.stderr
