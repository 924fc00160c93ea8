"""`duckflow try` (O7): a real process, a real sandbox, no model."""

import os
import re
import subprocess
import sys
from pathlib import Path

from fakes import warm
from fakes.terminal import Terminal

COMMAND = [sys.executable, "-m", "duckflow", "try"]


def attempt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(
        [*COMMAND, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ},
        timeout=120,
        check=False,
    )


def test_O7_without_an_answer_nothing_changes_and_the_changes_can_be_applied_later(folder: Path):
    (folder / "a.txt").write_text("a\n")
    done = attempt(folder, "--", "sed -i s/a/b/ a.txt; rm -f none; echo said")
    assert (done.returncode, done.stdout) == (3, "said\n"), done.stderr
    assert "+b" in done.stderr
    assert (folder / "a.txt").read_text() == "a\n"
    session = re.findall(r"try --apply (\w+)", done.stderr)[0]
    done = attempt(folder, "--apply", session)
    assert done.returncode == 0, done.stderr
    assert (folder / "a.txt").read_text() == "b\n"
    assert attempt(folder, "--apply", session).returncode == 2


def test_O7_yes_applies_at_once_and_the_exit_code_is_that_of_the_command(folder: Path):
    done = attempt(folder, "--yes", "--", "sh", "-c", "echo new > 'new file'; exit 5")
    assert done.returncode == 5, done.stderr
    assert (folder / "new file").read_text() == "new\n"


def test_O7_a_command_that_changes_nothing_asks_nothing(folder: Path):
    done = attempt(folder, "--", "ls", "-a")
    assert (done.returncode, done.stderr) == (0, "")
    for nothing in ([], ["--"], ["  "]):
        done = attempt(folder, *nothing)
        assert (done.returncode, "duckflow try -- make clean" in done.stderr) == (2, True), nothing


def test_O7_options_behind_the_command_are_its_own_and_those_before_it_must_exist(folder: Path):
    done = attempt(folder, "ls", "-a", "--json")
    assert "unrecognized option '--json'" in done.stderr + done.stdout
    assert "There is no option --bogus" in attempt(folder, "--bogus", "--", "ls").stderr


def test_O7_a_host_that_is_not_allowed_is_asked_for_with_an_option(folder: Path):
    done = attempt(folder, "--", "curl -s http://example.invalid/")
    assert "duckflow try --host example.com" in done.stderr


def test_O7_in_a_terminal_the_user_decides(folder: Path):
    (folder / "a.txt").write_text("a\n")
    with Terminal([*COMMAND, "--workspace", str(folder), "--", "rm a.txt"]) as terminal:
        terminal.wait_for("Apply it?")
        terminal.type("hm\n")
        terminal.wait_for("Please answer yes or no")
        terminal.type("no\n")
        assert terminal.wait_for_end() == 0
    assert (folder / "a.txt").exists()
