"""Wishes that a message spells out, so that a small model need not choose (J11)."""

from pathlib import Path

from duckflow.domain.events import ActionStarted, Reply
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.loops.thinking.spelled_out import file_to_show, missing_file, spelled_out, wants_list
from duckflow.ui.views.events import Describer
from fakes.engine import engine
from fakes.model_server import ModelServer
from fakes.plays import play
from fakes.rows import every_row

FILES = ("calc.py", "tests/test_calc.py", "README.md", "old.txt")


@every_row(
    ("said", "operation", "args"),
    [
        ("rename calc.py to math.py", "move_file", {"path": "calc.py", "to": "math.py"}),
        ("Please move calc.py into lib/", "move_file", {"path": "calc.py", "to": "lib/calc.py"}),
        ("calc.py を calculator.py に改名して", "move_file", {"path": "calc.py", "to": "calculator.py"}),
        ("delete the file old.txt", "delete_file", {"path": "old.txt"}),
        ("old.txtを消してください", "delete_file", {"path": "old.txt"}),
        ("rename add to plus", "", {}),
        ("rename calc.py to old.txt", "", {}),
        ("remove divide from calc.py", "", {}),
        ("delete missing.txt", "", {}),
        ("calc.py の divide を消して", "", {}),
    ],
)
def test_J11_a_renaming_or_deletion_in_plain_words_is_read_by_the_program(said, operation, args):
    found = spelled_out(said, FILES)
    assert (found.operation if found else "") == (f"file_ops.{operation}" if operation else "")
    assert (found.args if found else {}) == args


def test_J11_wishes_to_see_a_file_or_the_files_are_read_by_the_program():
    shown = ("show me calc.py", "Show me the code of test_calc.py", "README.md の中身を見せてください")
    assert [file_to_show(said, FILES) for said in shown] == ["calc.py", "tests/test_calc.py", "README.md"]
    listed = (
        "what files are here?",
        "list the files",
        "どんなファイルがありますか？",
        "ファイル一覧を見せて",
    )
    assert all(map(wants_list, listed))
    others = ("show me how divide works in calc.py", "print hello", "add two files", "ファイルを作って")
    assert not any(file_to_show(said, FILES) or wants_list(said) for said in others)


def test_J11_a_file_that_is_not_there_is_no_reason_to_write_one():
    """Asked to rename a file that did not exist, the real model wrote one under the new name."""
    named = (
        "rename hello.py to greet.py",
        "delete new.txt",
        "hello.pyを見せて",
        "delete calc.py",
        "delete divide",
    )
    assert [missing_file(said, FILES) for said in named] == ["hello.py", "new.txt", "hello.py", "", ""]


async def test_J11_files_are_shown_renamed_and_programs_run_without_the_model(tmp_path: Path):
    """M1: a renamed file needs no test, so a missing one is not mentioned."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "hello.py").write_text("print('hel' + 'lo')\n")
    (folder / "ask.py").write_text("input('Name? ')\n")
    with ModelServer(play()) as server:
        async with engine(folder, server=server, small=True, mode="ask") as duck:
            say = duck.app.chat.say
            assert await say("show me hello.py") == "done"
            assert "print('hel' + 'lo')" in duck.of(Reply)[-1].text
            assert await say("run hello.py") == "done"
            assert duck.of(ActionStarted)[-1].action.args == {"command": "python3 hello.py"}
            assert duck.of(Reply)[-1].text == "It ran; the output is above."
            assert await say("run ask.py") == "done"
            assert "another terminal: python3 ask.py" in duck.of(Reply)[-1].text
            assert await say("rename hello.py to greet.py") == "awaiting_approval"
            assert await duck.app.chat.answer(AnswerApproval(yes=True)) == "done"
            describe = Describer()
            lines = [found.text for event in duck.events if (found := describe(event))]
    assert (folder / "greet.py").exists()
    assert not (folder / "hello.py").exists()
    assert not any("not tested" in line for line in lines)
