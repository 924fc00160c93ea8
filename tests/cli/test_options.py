"""The conversation's flags are read without typer, and only when they are unambiguous."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from duckflow.cli.main import app
from duckflow.cli.plain_flags import (
    RunFlags,
    read_options,
    read_run_flags,
    with_command_first,
    with_help_as_flag,
    with_run_named,
)
from fakes import warm
from fakes.engine import write_script


def test_plain_flags_open_the_conversation_at_once():
    start = read_options(["--model", "relay", "--mode=plan", "--workspace", "x", "--continue", "--trust"])
    assert start is not None
    assert (start.model, start.mode, start.workspace) == ("relay", "plan", Path("x"))
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


def test_M1_a_request_on_the_command_line_begins_the_conversation():
    for arguments in (["fix the parser"], ["--mode", "auto", "パーサーを直して"]):
        start = read_options(arguments)
        assert start is not None
        assert start.request == arguments[-1]
    assert read_options(["frobnicate"]) is None, "a mistyped command"
    assert read_options(["fix", "the", "parser"]) is None
    again = read_options(["-c"])
    assert again is not None
    assert again.last


def test_M3_the_print_flag_of_other_agents_means_run():
    assert with_run_named(["-p", "do it", "--json"]) == ["run", "do it", "--json"]
    assert with_run_named(["--model", "relay", "--print", "do it"]) == ["run", "--model", "relay", "do it"]
    for other in (["run", "-p"], ["-c"], [], ["--", "-p"]):
        assert with_run_named(other) == other


def test_M3_flags_before_the_command_count():
    assert with_command_first(["--model", "relay", "run", "go"]) == ["run", "--model", "relay", "go"]
    assert with_command_first(["--mode=auto", "--trust", "resume"]) == ["resume", "--mode=auto", "--trust"]
    for other in (["run", "go"], ["--model", "run"], ["--continue", "run"], ["--model", "x", "doctor"], []):
        assert with_command_first(other) == other


def test_the_flags_of_run_mean_the_same_as_to_the_whole_command_line():
    """M3: flags that are read directly have the values that typer would find; typer reads the rest."""
    command = typer.main.get_command(app).commands["run"]  # pyright: ignore[reportAttributeAccessIssue]
    lists = [
        [],
        ["x"],
        ["x y", "--model", "relay", "--mode=plan", "--workspace", "w", "--json", "--trust"],
        ["--json", "--max-loops", "12", "x", "--max-cost=0.5", "--verify", "make test"],
        ["--resume", "ab12", "--answer", "", "--max-cost", "3"],
        ["x", "--model=a", "--model=b", "--workspace="],
    ]
    for words in lists:
        read = read_run_flags(["run", *words])
        assert read == RunFlags(**command.make_context("run", list(words)).params), words
    left = ["-h", "--help", "--", "-x", "--mode=no", "--model", "--trust=1", "--max-loops=0", "--max-loops=x"]
    left += ["--max-cost=-1", "--max-cost=nan", "--max-loops=１", "--mod=relay", "second"]
    assert [word for word in left if read_run_flags(["run", "x", word]) is not None] == []
    assert read_run_flags(["x"]) is None


def test_a_conversation_with_nobody_at_the_keyboard_ends_without_a_fault(folder: Path):
    """`duckflow </dev/null`: a device that can't be waited for is the end of input."""
    model = f"scripted:{write_script(folder.parent / 's.jsonl', [])}"
    ended = warm.run(
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


def test_M3_help_and_version_are_understood_as_words_too():
    wanted = {
        "help": "--help",
        "help run": "run --help",
        "help sessions list": "sessions list --help",
        "version": "--version",
        "run help": "run help",
        "run version": "run version",
    }
    assert {line: " ".join(with_help_as_flag(line.split())) for line in wanted} == wanted
