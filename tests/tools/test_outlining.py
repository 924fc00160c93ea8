"""file_ops.outline: its result for each language, and hostile files (N, SAFETY 15)."""

import asyncio
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.outline import outline as outlining
from duckflow.tools.outline.outline import ROLES, languages, rules_of
from duckflow.tools.searching import ripgrep
from duckflow.tools.toolset import file_tools
from fakes.access import access_to

CASES = tomllib.loads(Path(__file__).with_name("outlines.toml").read_text("utf-8"))


@pytest.fixture
def outline(tmp_path):
    catalogue = Catalogue(file_tools(None))

    async def outline(name, content=None):
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode()
            (tmp_path / name).write_bytes(data)
        tool, parsed = catalogue.validate(Action(operation="outline", args={"path": name}))
        return await tool.run(parsed, access_to(tmp_path))

    return outline


async def refusal(awaitable) -> str:
    with pytest.raises(ToolError) as error:
        await awaitable
    return str(error.value)


@pytest.mark.parametrize("name", CASES)
async def test_the_outline_of_each_language(outline, name):
    source = CASES[name]["source"]
    result = await outline(name, source)
    head, _, rest = result.text.partition("\n")
    assert head == f"{name} (outline of {source.count(chr(10))} lines)"
    assert rest + "\n" == CASES[name]["outline"]
    assert (result.path, result.changed, result.digest) == (name, (), None)


def test_every_language_has_a_case_and_rules_that_its_grammar_knows():
    shown = {Path(name).suffix for name in CASES}
    assert {name for suffix, name in languages().items() if suffix in shown} == set(languages().values())
    for name in languages().values():
        rules = rules_of(name)
        assert tuple(rules) == ROLES
        assert all("kind" in rule for listed in rules.values() for rule in listed)


@pytest.mark.parametrize(
    ("name", "source", "lines"),
    [
        (
            "a.py",
            "犬 = '🦆🦆'\nclass 鳥(動物):\n    def 鳴く(self, 回数): pass\n",
            "2-3: class 鳥(動物)|3:   def 鳴く(self, 回数)",
        ),
        ("a.js", "/* 鳥🦆 */ class 鳥 { 鳴く(回数) {} }\n", "1: class 鳥|1:   鳴く(回数)"),
        (
            "a.go",
            'package a\n\n// 鳴く\nfunc 鳴く(回数 int) string { return "ガー" }\n',
            "4: func 鳴く(回数 int) string",
        ),
        ("a.java", "class 鳥 {\n  void 鳴く(int 回数) { }\n}\n", "1-3: class 鳥|2:   void 鳴く(int 回数)"),
        ("設計.md", "# 設計\n\n本文\n\n## 使い方\n", "1-5: # 設計|5:   ## 使い方"),
    ],
)
async def test_japanese_names_are_shown_whole(outline, name, source, lines):
    assert (await outline(name, source)).text.split("\n")[1:][-lines.count("|") - 1 :] == lines.split("|")


@pytest.mark.parametrize("name", ["duck.py", "duck.c", "duck.md", "duck.toml"])
async def test_crlf_and_a_byte_order_mark_change_nothing(outline, name):
    source = CASES[name]["source"]
    usual = (await outline(name, source)).text
    assert (await outline(name, "\ufeff" + source.replace("\n", "\r\n"))).text == usual
    assert "\r" not in usual


async def test_an_empty_file_and_one_without_definitions_say_so(outline):
    assert (await outline("a.py", "")).text == "a.py (empty)"
    assert (await outline("b.py", "print(1)\n")).text == "b.py (outline of 1 lines; nothing is defined here)"
    assert (await outline("c.md", "text\n")).text == "c.md (outline of 1 lines; nothing is defined here)"


@pytest.mark.parametrize(
    ("name", "source", "line", "shown"),
    [
        (
            "a.py",
            "def f(a):\n    return 1\n\n)))\n\nclass B:\n    pass\n",
            4,
            ["1-2: def f(a)", "6-7: class B"],
        ),
        (
            "a.c",
            "int f(int a) {\n  return 1\n}\nint g(void) { return 2; }\n",
            2,
            ["1-3: int f(int a)", "4: int g(void)"],
        ),
        ("a.ts", "class A {\n  f() {}\n", 2, ["1-2: class A", "2:   f()"]),
    ],
)
async def test_a_file_with_errors_shows_what_could_be_parsed(outline, name, source, line, shown):
    head, *lines = (await outline(name, source)).text.split("\n")
    assert f"line {line} can't be parsed, something may be missing" in head
    assert lines == shown


async def test_what_has_no_outline_is_sent_to_read_file(outline):
    said = await refusal(outline("a.xyz", "text\n"))
    assert said == "a.xyz: there is no outline of this type of file; use file_ops.read_file."
    assert "no outline" in await refusal(outline("Makefile", "all:\n"))


async def test_files_are_refused_as_read_file_refuses_them(outline, tmp_path):
    assert "binary file" in await refusal(outline("a.py", b"\x00\x01"))
    assert "Latin-1" in await refusal(outline("b.py", "s = 'déjà vu'".encode("latin-1")))
    assert "too large" in await refusal(outline("c.py", "x = 1\n" * 400_000))
    assert "not accepted" in await refusal(outline("../x.py"))
    assert "outside" in await refusal(outline("/etc/x.py"))
    assert await refusal(outline("x/c.py")) == "x/c.py: does not exist. There is: c.py."
    os.mkfifo(tmp_path / "pipe.py")
    await refusal(outline("pipe.py"))
    (tmp_path / "link.py").symlink_to("/etc/hostname")
    await refusal(outline("link.py"))


async def test_a_long_outline_is_cut_and_counted(outline):
    text = (await outline("a.py", "def f(): pass\n" * 1000)).text.split("\n")
    assert len(text) == 402
    assert text[-1] == "… 600 are left out"
    text = (await outline("a.py", "def f(): pass\n" * 60_000)).text.split("\n")
    assert (len(text), text[-1]) == (402, "… 4600 or more are left out")
    text = (await outline("a.md", "# a\n" * 1000)).text.split("\n")
    assert (len(text), text[-1]) == (402, "… 600 are left out")


async def test_a_long_signature_is_cut(outline):
    long = (await outline("a.py", f"def f({'a' * 100_000}): pass\nX = '{'b' * 100_000}'\n")).text.split("\n")
    assert [len(line) for line in long[1:]] == [123, 123]
    assert all(line.endswith("…") for line in long[1:])


DEEP = [
    ("a.js", "function f(){" * 2000 + "}" * 2000, "1: function f()"),
    ("b.js", "(" * 5000, ""),
    ("a.py", "f(" * 5000 + ")" * 5000, ""),
    ("a.html.md", "> " * 5000 + "# a", ""),
]


@pytest.mark.parametrize(("name", "source", "first"), DEEP)
async def test_thousands_of_levels_are_no_problem(outline, name, source, first):
    _, *lines = (await outline(name, source)).text.split("\n")
    assert (lines or [""])[0] == first
    assert sum(map(len, lines)) < 100_000


async def test_a_text_that_ends_the_parsers_process_ends_nothing_else(outline):
    said = await refusal(outline("a.yaml", "- " * 20_000))
    assert said == "a.yaml: can't be parsed; use file_ops.read_file."


async def test_a_text_that_keeps_the_parser_busy_is_given_up(outline, monkeypatch):
    monkeypatch.setattr(ripgrep, "TIME_LIMIT_S", 0.2)
    said = await refusal(outline("a.scala", "a match {case " * 5000))
    assert said == "a.scala: can't be parsed; use file_ops.read_file."
    assert not children()


async def test_a_cancelled_outline_leaves_no_process_behind(outline):
    running = asyncio.create_task(outline("a.scala", "a match {case " * 5000))
    while not (started := children()) and not running.done():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert started
    assert not children() & started


def children() -> set[str]:
    command = ["ps", "-A", "-ww", "-o", "pid=", "-o", "ppid=", "-o", "args="]
    rows = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\n")
    parts = (row.split(None, 2) for row in rows if "definition_finder" in row)
    return {pid for pid, parent, _ in parts if parent == str(os.getpid())}


def test_the_grammars_are_not_loaded_by_who_offers_the_tool():
    code = f"import sys, {outlining.__name__}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert outlining.__name__ in loaded.split()
    assert "ast_grep" not in loaded
