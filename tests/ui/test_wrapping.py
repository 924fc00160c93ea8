"""Running text is broken between words, in both scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.ui.output.text_width import width_of, wrap, wrap_hanging


def wrapped(said: str, columns: int = 10) -> str:
    return wrap(said, columns)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("one two three", "one two\nthree"),
        ("exactly 10", "exactly 10"),
        ("exactly 10 more", "exactly 10\nmore"),
        ("  indented", "  indented"),
        ("a\n    b", "a\n    b"),
        ("supercalifragilistic", "supercalifragilistic"),
        ("x supercalifragilistic y", "x\nsupercalifragilistic\ny"),
        ("line\n\nline", "line\n\nline"),
    ],
)
def test_words_stay_whole(said: str, shown: str):
    assert wrapped(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("あいうえおか", "あいうえお\nか"),
        ("あいうえお。か", "あいうえ\nお。か"),
        ("あいうえ「お」", "あいうえ\n「お」"),
        ("aあいうえお", "aあいうえ\nお"),
        ("ファイル hello.py を", "ファイル\nhello.py\nを"),
    ],
)
def test_japanese_breaks_anywhere_but_before_what_may_not_begin_a_line(said: str, shown: str):
    """M1: full width is two columns."""
    assert wrapped(said) == shown


@given(st.text(alphabet="abc あい、\n", max_size=80))
def test_only_white_space_changes_and_lines_fit_unless_a_word_does_not(said: str):
    shown = wrapped(said)
    assert shown.split() == said.split() or "".join(shown.split()) == "".join(said.split())
    for line in shown.split("\n"):
        assert width_of(line) <= 10 or " " not in line.strip()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  indented text of words", "  indented text\n  of words"),
        ("  1. いろはにほへとちり", "  1. いろはにほ\n     へとちり"),
        ("🦆 one two three", "🦆 one two three"),
        ("🦆 one two three four", "🦆 one two three\n   four"),
        ("    - one two three", "    - one two\n      three"),
        ("→ yes it is so and on", "→ yes it is so\n  and on"),
        ("plain words are here", "plain words are\nhere"),
    ],
)
def test_what_follows_stands_below_the_text_and_not_below_its_mark(line: str, shown: str):
    assert wrap_hanging(line, 16) == shown
