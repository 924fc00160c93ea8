"""Checks that a change reached the file that the user named, and its code (J3)."""

import json
from pathlib import Path

from duckflow.domain.events import Evaluated
from duckflow.domain.files.changes import FileChange
from duckflow.domain.files.effective_code import same_code, wants_text_only
from duckflow.i18n.catalogue import set_language
from duckflow.loops.judging.targets import missed_files
from duckflow.ui.views.goal import evaluation_text
from fakes.engine import engine
from fakes.model_server import ModelServer
from fakes.plays import play
from fakes.rows import every_row

FILES = ("calc.py", "cli.py", "tests/test_calc.py", "web/app.py")
OLD = "x"


@every_row(
    ("said", "changed", "created", "missed"),
    [
        ("fix divide in calc.py", ["cli.py"], [], ["calc.py"]),
        ("calc.py の割り算を直して", ["cli.py"], [], ["calc.py"]),
        ("fix divide in calc.py", ["calc.py"], [], []),
        ("fix divide in calc.py", ["calc.py", "cli.py"], [], []),
        ("fix divide in calc.py", [], ["src/calc.py"], ["calc.py"]),
        ("add a route to app.py", [], ["app.py"], ["web/app.py"]),
        ("create src/calc.py", [], ["src/calc.py"], []),
        ("add tests for calc.py", ["tests/test_calc.py"], [], []),
        ("use calc.py in the command line", ["cli.py"], [], []),
        ("calc.py の関数を使って表示して", ["cli.py"], [], []),
        ("write help.py like cli.py", [], ["help.py"], []),
        ("write usage.md about cli.py", [], ["usage.md"], []),
        ("fix the sum", ["cli.py"], [], []),
    ],
)
def test_J3_a_change_beside_the_named_file_is_found(said, changed, created, missed):
    first = {path: FileChange(path=path, before=OLD, after="y") for path in changed}
    first |= {path: FileChange(path=path, before=None, after="y") for path in created}
    assert list(missed_files(said, first, (*FILES, *created))) == missed


@every_row(
    ("path", "before", "after", "same"),
    [
        ("a.py", "def f():\n    return 1\n", 'def f():\n    """One."""\n    # one\n\n    return 1\n', True),
        ("a.py", "def f():\n    return 1\n", "def f():\n    return 2\n", False),
        ("a.py", 'x = "a"\n', 'x = "b"\n', False),
        ("a.py", "def f(:\n", "def f(:\n# no\n", False),
        ("a.sh", "#!/bin/sh\nls\n", "#!/bin/sh\n# list\n\nls\n", True),
        ("a.sh", "#!/bin/sh\nls\n", "#!/bin/bash\nls\n", False),
        ("a.js", "f()\n", "// call\nf()\n", True),
        ("a.js", "f()\n", "g()\n", False),
        ("a.md", "text\n", "# text\n", False),
    ],
)
def test_J3_versions_that_differ_in_comments_alone_do_the_same(path, before, after, same):
    assert same_code(path, before, after) is same


def test_J3_words_about_comments_or_layout_ask_for_no_other_behaviour():
    asks = {
        said: wants_text_only(said)
        for said in ("add docstrings", "コメントを付けて", "format it", "整形して")
    }
    others = {
        said: wants_text_only(said) for said in ("fix divide", "割り算を直して", "add a power function")
    }
    assert all(asks.values()), asks
    assert not any(others.values()), others


async def test_J3_a_fix_that_only_adds_a_comment_is_not_called_done(tmp_path: Path):
    """The real model wrote a new helper beside it, and comments into the file with the bug."""
    folder = tmp_path / "calc"
    folder.mkdir()
    (folder / "calc.py").write_text("def half(n):\n    return n\n")
    (folder / "cli.py").write_text("x = 1\n")
    both = json.dumps({"wants": "change", "operation": "write", "paths": ["calc.py", "cli.py"]})
    drafts = ["# halves\ndef half(n):\n    return n\n", "# calls\nx = 1\n"]
    fixed = ["def half(n):\n    return n / 2\n", "x = 2\n"]
    with ModelServer(play(both, *drafts, both, *fixed)) as server:
        async with engine(folder, server=server, small=True) as duck:
            set_language("ja")
            assert await duck.app.chat.say("half の結果が正しくないみたい") == "done"
            first, last = duck.of(Evaluated)
    assert "変わったのはコメントだけ" in evaluation_text(first)
    assert (first.evaluation.done, last.evaluation.done) == (False, True)
