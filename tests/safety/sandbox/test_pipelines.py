"""A command whose pipeline failed in its first part is no success (H4, J3)."""

import os
from pathlib import Path

import pytest

from duckflow.config.settings import ShellSettings
from duckflow.safety.sandbox.pipelines import end_of_pipeline, pipelines, read_statuses
from duckflow.safety.sandbox.shell import Shell
from fakes.rows import every_row

ENDS = {
    "the first part failed": ("pytest -q 2>&1 | tail -5", (1, 0), 0, 1, "pytest 1 | tail 0"),
    "all well": ("pytest | tail", (0, 0), 0, 0, ""),
    "the last part failed": ("cat x | false", (0, 1), 1, 1, ""),
    "both failed": ("pytest | grep x", (2, 1), 1, 1, "pytest 2 | grep 1"),
    "the reader left": ("yes | head -1", (141, 0), 0, 0, ""),
    "the reader left Python": ("python3 a.py | head -1", (120, 0), 0, 0, ""),
    "nothing found": ("grep -c x a | head", (1, 0), 0, 0, "grep 1 | head 0"),
    "the search itself failed": ("grep x missing | head", (2, 0), 0, 2, "grep 2 | head 0"),
    "files differ": ("diff a b | head -3", (1, 0), 0, 0, "diff 1 | head 0"),
    "nothing found, by xargs": (
        "find . | xargs grep x | wc -l",
        (0, 123, 0),
        0,
        0,
        "find 0 | xargs 123 | wc 0",
    ),
    "a module": ("cd a && python -m pytest tests | tail", (1, 0), 0, 1, "pytest 1 | tail 0"),
    "a variable and a time": ("A=1 timeout 5 make | tail", (2, 0), 0, 2, "timeout 2 | tail 0"),
    "the last of several": ("a | b; echo 'x | y'; c | d | e", (0, 3, 0), 0, 3, "c 0 | d 3 | e 0"),
    "in a loop": ("for f in a b; do make $f | tail; done", (2, 0), 0, 2, "make 2 | tail 0"),
    "more than the text shows": ('eval "$X" # a|b', (1, 0, 0), 0, 1, "part 1 1 | part 2 0 | part 3 0"),
    "nothing noted": ("pytest | tail", (), 0, 0, ""),
    "no pipeline at the end": ("a | b; c", (3,), 3, 3, ""),
}


@every_row(("command", "statuses", "code", "ended", "text"), ENDS.values(), ids=ENDS.keys())
def test_H4_the_first_part_that_failed_decides_unless_it_only_said_no(command, statuses, code, ended, text):
    assert end_of_pipeline(command, statuses, code) == (ended, text)


@every_row(
    ("command", "last"),
    [
        ("a '|' b", ("a '|' b",)),
        ("(a | b) | c", ("(a | b)", "c")),
        ('echo "$(a | b)" | c', ('echo "$(a | b)"', "c")),
        ("a |& b", ("a", "b")),
        ("a || b", ("b",)),
        ("a 2>&1 | b &> c", ("a 2>&1", "b &> c")),
        ("cat <<'END' | b\n| x | y\nEND\n", ("cat << END", "b")),
        ("a | b\n\n", ("a", "b")),
        ("a \\| b | c", ("a \\| b", "c")),
    ],
)
def test_the_parts_of_a_pipeline_are_found_in_the_text(command, last):
    assert pipelines(command)[-1] == last


REAL = {
    "(exit 3) | cat": (3, "(…) 3 | cat 0"),
    "yes | head -1": (0, ""),
    "echo a | grep -q b | cat": (0, "echo 0 | grep 1 | cat 0"),
    "false | true; echo next": (0, ""),
    "set -euo pipefail; false | true; echo next": (1, "false 1 | true 0"),
    "trap 'echo mine' EXIT; false | true": (0, ""),
    "false | true; exit 7": (7, ""),
    "sh -c 'exit 4' | tail -n 1": (4, "sh 4 | tail 0"),
}


@pytest.mark.parametrize("level", ["auto", "none"])
async def test_H4_bash_says_how_each_part_of_the_last_pipeline_ended(folder: Path, level: str):
    shell = Shell(folder, ShellSettings(sandbox=level), copies=folder.parent / "copies")
    wrong = []
    for command, (code, text) in REAL.items():
        result = await shell.run(command)
        if (result.exit_code, result.pipeline) != (code, text):
            wrong.append((command, result))
    listed = await shell.run("find $TMPDIR -maxdepth 1 -type f | cat; echo a | cat")
    await shell.aclose()
    assert not wrong
    assert listed.output == "a\n", "nothing is left of the notes"


def test_what_a_command_leaves_in_place_of_the_note_is_not_believed(tmp_path: Path):
    for number, said in enumerate((b"1 x", b"-1 0", b"9999 0", b"1 " * 500, b"\xff")):
        (tmp_path / f"{number}").write_bytes(said)
        assert read_statuses(tmp_path / f"{number}") == ()
    (tmp_path / "secret").write_bytes(b"1 0")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    assert read_statuses(tmp_path / "link") == read_statuses(tmp_path / "pipe") == ()
    assert read_statuses(tmp_path / "none") == ()
    assert read_statuses(tmp_path / "secret") == (1, 0)
