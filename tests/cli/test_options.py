"""The conversation's own flags are read without the whole command line, and only when there is no doubt."""

import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.cli.chat.options import read_options
from fakes.engine import write_script


def test_plain_flags_open_the_conversation_at_once():
    start = read_options(["--model", "relay", "--mode=plan", "--workspace", "x", "--continue", "--trust"])
    assert start is not None
    assert (start.model, start.mode, start.folder) == ("relay", "plan", Path("x"))
    assert start.last
    assert start.trust
    assert read_options([]) is not None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "x"],
        ["--mode", "nonsense"],
        ["--model"],
        ["--model", "--trust"],
        ["--trust=yes"],
        ["x"],
    ],
)
def test_all_else_is_left_to_the_whole_command_line(arguments: list[str]):
    assert read_options(arguments) is None


def test_a_conversation_with_nobody_at_the_keyboard_ends_without_a_fault(folder: Path):
    """`duckflow </dev/null`: a device that can't be waited for is the end of input."""
    model = f"scripted:{write_script(folder.parent / 's.jsonl', [])}"
    ended = subprocess.run(
        [sys.executable, "-m", "duckflow", "--model", model, "--workspace", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Duckflow is using" in ended.stdout
