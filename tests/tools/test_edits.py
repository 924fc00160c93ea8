"""edit_file's heart: what is found, what is put, what is refused (N)."""

from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.domain.errors import ToolError
from duckflow.tools.editing.edits import Edit, apply_edits
from fakes.rows import every_row

PY = """def one():
    x = 1
    return x


def two():
    x = 2
    return x
"""
TABS = "class A:\n\tdef f(self):\n\t\tif x:\n\t\t\treturn 1\n"
LOOSE = "matched with white space ignored"


class Case(NamedTuple):
    text: str
    edits: list[tuple[str, str]]
    after: str
    note: str = ""


CASES = {
    "exact, part of a line": Case("a = 1\nb = 2\n", [("= 1", "= 10")], "a = 10\nb = 2\n"),
    "exact, several lines": Case(
        PY, [("    x = 2\n    return x", "    return 2")], PY[:47] + "    return 2\n"
    ),
    "exact beats loose": Case("a  b\na b\n", [("a b", "c")], "a  b\nc\n"),
    "nothing in its place": Case("a\nb\nc\n", [("b\n", "")], "a\nc\n"),
    "whole file": Case("a\n", [("a\n", "b\nc\n")], "b\nc\n"),
    "special characters are only characters": Case(
        "a.*(b)\\1\n", [(".*(b)\\1", "$0 \\g<0>")], "a$0 \\g<0>\n"
    ),
    "japanese": Case(
        "# 挨拶する\nprint('こんにちは')\n",
        [("こんにちは", "こんばんは")],
        "# 挨拶する\nprint('こんばんは')\n",
    ),
    "japanese with an ideographic space": Case(
        "題名：\u3000犬\n本文\n", [("題名： 犬", "題名： 猫")], "題名： 猫\n本文\n", LOOSE
    ),
    "japanese comment, indentation left out": Case(
        "def f():\n    # 合計を返す\n    return a\n",
        [("# 合計を返す\nreturn a", "# 積を返す\nreturn a * b")],
        "def f():\n    # 積を返す\n    return a * b\n",
        LOOSE,
    ),
    "crlf file, lf edit": Case("a\r\nb\r\nc\r\n", [("a\nb", "x\ny")], "x\r\ny\r\nc\r\n"),
    "crlf file, crlf edit": Case("a\r\nb\r\nc\r\n", [("b\r\n", "")], "a\r\nc\r\n"),
    "crlf file, new lines": Case("a\r\nb\r\n", [("a", "a\n1\n2")], "a\r\n1\r\n2\r\nb\r\n"),
    "mixed line ends of other lines are kept": Case(
        "a\r\nb\nc\r\nd\ne\r\n", [("c", "C\nC")], "a\r\nb\nC\r\nC\r\nd\ne\r\n"
    ),
    "lf file, crlf edit": Case("a\nb\n", [("a\r\nb", "x\r\ny")], "x\ny\n"),
    "final newline kept": Case("a\nb\n", [("b\n", "c")], "a\nc\n"),
    "no final newline, none added": Case("a\nb", [("b", "c")], "a\nc"),
    "last line of a crlf file": Case("a\r\nb\r\n", [("b\n", "c")], "a\r\nc\r\n"),
    "spaces for tabs": Case(
        TABS,
        [("    def f(self):\n        if x:\n", "    def f(self):\n        if y:\n            pass\n")],
        "class A:\n\tdef f(self):\n\t\tif y:\n\t\t\tpass\n\t\t\treturn 1\n",
        LOOSE,
    ),
    "tabs for spaces": Case(
        "if a:\n    if b:\n        c()\n",
        [("\tif b:\n\t\tc()", "\tif b:\n\t\tc()\n\t\tif d:\n\t\t\te()")],
        "if a:\n    if b:\n        c()\n        if d:\n            e()\n",
        LOOSE,
    ),
    "two spaces for four": Case(
        "if a:\n    if b:\n        c()\n",
        [("if a:\n  if b:\n    c()", "if a:\n  if b:\n    if c:\n      d()")],
        "if a:\n    if b:\n        if c:\n            d()\n",
        LOOSE,
    ),
    "indentation left out": Case(
        "def f():\n    a()\n    if b:\n        c()\n",
        [("a()\nif b:\n    c()", "a()\nif b:\n    c()\n    d()\nelse:\n    e()")],
        "def f():\n    a()\n    if b:\n        c()\n        d()\n    else:\n        e()\n",
        LOOSE,
    ),
    "too much indentation": Case(
        "def f():\n    a()\n    b()\n",
        [("        a()\n        b()", "        a()\n    c()")],
        "def f():\n    a()\nc()\n",
        LOOSE,
    ),
    "trailing white space of kept lines stays": Case("a  \nb\nc\n", [("a\nb", "a\nB")], "a  \nB\nc\n", LOOSE),
    "blanks inside a line": Case("x = [1, 2, 3]\n", [("x=[1,2,3]", "x = [1]")], "x = [1]\n", LOOSE),
    "blanks inside a part of a line": Case(
        "y = f(a, b) + 1\n", [("f( a,b )", "g(a)")], "y = g(a) + 1\n", LOOSE
    ),
    "other line breaks": Case(
        "def f(a,\n      b):\n    pass\n", [("def f(a, b):", "def f(a):")], "def f(a):\n    pass\n", LOOSE
    ),
    "a blank line too many": Case("a()\n\nb()\nc()\n", [("a()\nb()", "ab()")], "ab()\nc()\n", LOOSE),
    "lines away with white space ignored": Case("a\n  b\nc\n", [("    b\n", "")], "a\nc\n", LOOSE),
    "one after the other": Case("a\nb\n", [("a", "x"), ("x\nb", "y")], "y\n"),
    "already made": Case(
        "x = 20\ny = 1\n", [("x = 10", "x = 20")], "x = 20\ny = 1\n", "was made already (line 1)"
    ),
    "already made, an addition": Case(
        "import a\nimport b\n",
        [("import a\n", "import a\nimport b\n")],
        "import a\nimport b\n",
        "was made already (line 1)",
    ),
    "already made, an indentation": Case(
        "if a:\n    b\n", [("  b", "    b")], "if a:\n    b\n", "made already"
    ),
    "already made, in other white space": Case(
        "if a:\n\tb()\n\tc()\n", [("    b()", "    b()\n    c()")], "if a:\n\tb()\n\tc()\n", "made already"
    ),
    "one made already, one not": Case(
        "value = 2\nother = 1\n",
        [("value = 1", "value = 2"), ("other = 1", "other = 2")],
        "value = 2\nother = 2\n",
        "edit 1 of 2 was made already",
    ),
    "a blank line more is no repetition": Case("a\nb\n", [("a\n", "a\n\n")], "a\n\nb\n"),
    "the same again": Case("a\n", [("a", "a")], "a\n"),
}


@every_row("case", CASES.values(), ids=CASES.keys())
def test_edits_find_and_replace(case):
    edited = apply_edits(case.text, [Edit(find=find, replace=replace) for find, replace in case.edits])
    assert edited.text == case.after
    assert case.note in "\n".join(edited.notes)
    if not case.note:
        assert edited.notes == ()


REFUSALS = {
    "several places": (PY, [("    return x", "    return 0")], ["more than one place (lines 3, 8)"]),
    "several places with white space ignored": (PY, [("return  x", "return 0")], ["(lines 3, 8)"]),
    "overlapping places": ("aaa\n", [("aa", "b")], ["more than one place"]),
    "very many places": ("a\n" * 5000, [("a", "b")], ["(lines 1, 2, 3, 4, 5, 6, 7, 8, …)"]),
    "near": (PY, [("    x = 22\n    return x", "")], ["The nearest text is:\n7|     x = 2\n8|     return x"]),
    "near, japanese": (
        "一行目\nこれは設定ファイルです\n三行目\n",
        [("これは設定のファイルでした", "x")],
        ["2| これは設定ファイルです"],
    ),
    "nothing like it": (PY, [("SELECT * FROM users", "x")], ["nothing in the file (9 lines) is like it"]),
    "empty find": (PY, [("", "x")], ["find is empty", "write_file"]),
    "empty find, empty file": ("", [("", "x")], ["find is empty", "write_file"]),
    "empty file": ("", [("a", "b")], ["the file is empty; use write_file"]),
    "blank find": ("a\nb\n", [("   ", "x")], ["the text to find is nowhere"]),
    "half a word is not found loosely": (
        "maximum = f (1)\n",
        [("mum=f(1)", "x")],
        ["the text to find is nowhere"],
    ),
    "a short replacement is not taken as made": (
        "a {\n}\n",
        [("nowhere", "}")],
        ["the text to find is nowhere"],
    ),
    "second of two": ("a\nb\n", [("a", "x"), ("zzz", "y")], ["edit 2 of 2: the text to find is nowhere"]),
}


@every_row(("text", "edits", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_edits_that_can_not_be_made_say_why(text, edits, words):
    with pytest.raises(ToolError) as refusal:
        apply_edits(text, [Edit(find=find, replace=replace) for find, replace in edits])
    for word in words:
        assert word in str(refusal.value)
    assert "Nothing was changed." in str(refusal.value)


ALL = {
    "exact": ("a b a\na\n", ("a", "xy"), "xy b xy\nxy\n", "made in 3 places"),
    "one place": ("a b\n", ("a", "x"), "x b\n", "made in 1 place"),
    "overlapping places": ("aaaa\n", ("aa", "b"), "bb\n", "made in 2 places"),
    "more places than are shown": ("a\n" * 5000, ("a", "b"), "b\n" * 5000, "made in 5000 places"),
    "crlf": ("a\r\nb\r\na\r\n", ("a", "x\ny"), "x\r\ny\r\nb\r\nx\r\ny\r\n", "made in 2 places"),
    "removed": ("a = 1  # no\nb = 2  # no\n", ("  # no", ""), "a = 1\nb = 2\n", "made in 2 places"),
    "with white space ignored, each in its own indentation": (
        "if a:\n    f(1,2)\n    if b:\n        f(1,2)\n",
        ("f(1, 2)", "g(1)\nh(2)"),
        "if a:\n    g(1)\n    h(2)\n    if b:\n        g(1)\n        h(2)\n",
        "made in 2 places",
    ),
    "made already": ("ab ab\n", ("a", "ab"), "ab ab\n", "made already"),
}


@every_row(("text", "edit", "after", "note"), ALL.values(), ids=ALL.keys())
def test_an_edit_of_all_places_changes_each_of_them(text, edit, after, note):
    edited = apply_edits(text, [Edit(find=edit[0], replace=edit[1], all=True)])
    assert edited.text == after
    assert note in edited.notes[0]


def test_an_edit_of_all_places_still_needs_one():
    with pytest.raises(ToolError, match="the text to find is nowhere"):
        apply_edits("a\n", [Edit(find="nowhere", replace="b", all=True)])


def test_an_inexact_match_shows_the_lines_as_all_edits_left_them():
    edits = [
        Edit(find="def  two():\n  x = 2", replace="def two():\n  x = 3\n  y = 4"),
        Edit(find="def one():", replace="# first\n\n\ndef one():"),
    ]
    edited = apply_edits(PY, edits)
    assert edited.notes == (
        "edit 1 of 2 matched with white space ignored; the lines are now:\n"
        "8| \n9| def two():\n10|     x = 3\n11|     y = 4\n12|     return x",
    )
    assert edited.text.split("\n")[8:11] == ["def two():", "    x = 3", "    y = 4"]


def test_several_places_are_shown_with_their_neighbours():
    with pytest.raises(ToolError) as refusal:
        apply_edits(PY, [Edit(find="return x", replace="return 0")])
    said = str(refusal.value)
    assert "2|     x = 1\n3|     return x\n4| \n…\n7|     x = 2\n8|     return x" in said
    assert "all: true" in said


LINES = st.lists(st.text(st.sampled_from("ab \tあ(")), min_size=1, max_size=8)


@given(lines=LINES, data=st.data())
def test_a_line_that_is_there_once_is_replaced_and_nothing_else(lines, data):
    place = data.draw(st.integers(0, len(lines)))
    lines.insert(place, "THE ONE LINE")
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = newline.join(lines)
    edited = apply_edits(text, [Edit(find="THE ONE LINE", replace="1\n2")])
    end = newline if len(lines) > 1 else "\n"
    assert edited.text == end.join([*lines[:place], "1", "2", *lines[place + 1 :]])


@given(text=st.text(max_size=200), find=st.text(min_size=1, max_size=10), replace=st.text(max_size=10))
def test_any_edit_ends_in_a_text_or_a_tool_error(text, find, replace):
    with suppress(ToolError):
        assert isinstance(apply_edits(text, [Edit(find=find, replace=replace)]).text, str)
