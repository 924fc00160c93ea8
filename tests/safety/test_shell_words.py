"""A command line taken apart as a shell would (a courtesy, and never wrong in the harmless direction)."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duckflow.safety.policy.shell_syntax import read_command
from fakes.rows import every_row


@every_row(
    ("line", "commands"),
    [
        ("ls -la", [(["ls", "-la"], [])]),
        ("a 'b c' \"d e\" f\\ g", [(["a", "b c", "d e", "f g"], [])]),
        ("a && b || c | d; e\nf", [([x], []) for x in "abcdef"]),
        ("a > x 2>&1", [(["a"], ["x"])]),
        ("a 2>x >>y <z", [(["a"], ["x", "y", "z"])]),
        ("a &> x", [(["a"], ["x"])]),
        ("a 2 > x", [(["a", "2"], ["x"])]),
        ("echo a#b # c", [(["echo", "a#b"], [])]),
        ("echo 'a|b' \"c;d\" e\\;f", [(["echo", "a|b", "c;d", "e;f"], [])]),
        ("a\\\nb c", [(["ab", "c"], [])]),
        ("echo '$x `y`'", [(["echo", "$x `y`"], [])]),
        ('echo "\\$x"', [(["echo", "$x"], [])]),
        ("''", [([""], [])]),
    ],
)
def test_words_operators_and_quotes(line, commands):
    read = read_command(line)
    assert read is not None
    assert [(list(one.words), list(one.redirects)) for one in read] == commands


@settings(max_examples=150)
@given(st.text("ab -'\"\\#=.,:@%+_/~", min_size=1, max_size=14))
@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash to compare with")
def test_what_is_clear_has_the_words_a_shell_sees(line):
    read = read_command(f"printf '%s\\0' {line}")
    if read is None or len(read) != 1 or "~" in line:
        return
    shell = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, timeout=60, check=False
    )
    words = read[0].words[2:]
    assert shell.returncode == 0, shell.stderr
    assert shell.stdout.decode() == "".join(f"{word}\0" for word in words or ("",))
