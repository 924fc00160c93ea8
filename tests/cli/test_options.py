"""The conversation's own flags are read without the whole command line, and only when there is no doubt."""

from pathlib import Path

import pytest

from duckflow.cli.chat.options import read_options


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
