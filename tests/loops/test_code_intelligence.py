"""O5: code intelligence in a conversation: renames judged as one, findings, callers left behind."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.events import ActionFinished, Evaluated
from duckflow.domain.questions.approval import AnswerApproval
from fakes import language_server
from fakes.engine import action, decision, engine
from fakes.gate import Gate
from fakes.rows import every_row

YES = AnswerApproval(yes=True)
ONE = "def greet\r\n# 日本語🦆 greet\r\n"
TWO = "\ufeff🦆 greet greet\n"


def code(operation: str, **args: Any) -> dict[str, Any]:
    return {"operation": f"code.{operation}", "args": args}


def settings(folder: Path, mode: str = "") -> dict[str, Any]:
    """The fake server, which runs where the tests run."""
    command = [sys.executable, "-I", "-S", language_server.__file__, str(folder.parent / "log")]
    command += [mode] if mode else []
    servers = {"fake": {"command": command, "suffixes": [".fake"]}}
    return {"code": {"servers": servers}, "shell": {"sandbox": "external"}}


def project(around: Path) -> Path:
    folder = around / "project"
    folder.mkdir()
    (folder / "one.fake").write_bytes(ONE.encode())
    (folder / "two.fake").write_bytes(TWO.encode())
    return folder


def started(folder: Path) -> int:
    log = folder.parent / "log"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return sum(json.loads(line).get("method") == "initialize" for line in lines)


async def test_o5_a_rename_is_asked_about_as_one_and_undone_as_one(tmp_path):
    folder = project(tmp_path)
    rename = code("rename", symbol="greet", to="挨拶")
    async with engine(
        folder, decision("", rename), decision("Done."), mode="ask", **settings(folder)
    ) as duck:
        assert await duck.app.chat.say("rename greet") == "awaiting_approval"
        asked = duck.state.approval
        assert set(asked.before) == {"one.fake", "two.fake"}
        assert "-def greet" in asked.difference
        assert "🦆 挨拶 挨拶" in asked.difference
        assert (folder / "one.fake").read_bytes() == ONE.encode()
        assert await duck.app.chat.answer(YES) == "done"
        assert (folder / "one.fake").read_bytes() == ONE.replace("greet", "挨拶").encode()
        assert (folder / "two.fake").read_bytes() == TWO.replace("greet", "挨拶").encode()
        await duck.app.undoing.undo()
        assert (folder / "one.fake").read_bytes() == ONE.encode()
        assert (folder / "two.fake").read_bytes() == TWO.encode()


async def test_o5_a_file_that_changed_after_the_question_is_not_overwritten(tmp_path):
    folder = project(tmp_path)
    rename = code("rename", symbol="greet", to="hail")
    async with engine(
        folder, decision("", rename), decision("Done."), mode="ask", **settings(folder)
    ) as duck:
        await duck.app.chat.say("rename greet")
        (folder / "two.fake").write_text("mine\n", "utf-8")
        await duck.app.chat.answer(YES)
    assert (folder / "one.fake").read_bytes() == ONE.encode(), "no half of it"
    assert (folder / "two.fake").read_text("utf-8") == "mine\n"


async def test_o5_a_rename_can_move_a_file(tmp_path):
    folder = project(tmp_path)
    rename = code("rename", symbol="greet", to="hail")
    async with engine(folder, decision("", rename), decision("Done."), **settings(folder, "moves")) as duck:
        await duck.app.chat.say("rename greet")
        assert sorted(path.name for path in folder.iterdir()) == ["hail.fake", "two.fake"]
        assert (folder / "hail.fake").read_bytes() == ONE.replace("greet", "hail").encode()
        await duck.app.undoing.undo()
        assert (folder / "one.fake").read_bytes() == ONE.encode()
        assert not (folder / "hail.fake").exists()


async def test_o5_a_rename_keeps_one_byte_order_mark(tmp_path):
    folder = project(tmp_path)
    (folder / "two.fake").write_text("\ufeffgreet\n", "utf-8")
    rename = code("rename", symbol="greet", to="hail")
    async with engine(folder, decision("", rename), decision("Done."), **settings(folder, "marks")) as duck:
        await duck.app.chat.say("rename greet")
    assert (folder / "two.fake").read_text("utf-8") == "\ufeffhail\n"


@every_row(
    ("mode", "reason"),
    [("outside", "/etc/passwd, which is outside the folder"), ("creates", "wants to create a file")],
)
async def test_o5_a_rename_that_reaches_further_is_refused(mode, reason, tmp_path):
    folder = project(tmp_path)
    rename = code("rename", symbol="greet", to="hail")
    async with engine(folder, decision("", rename), decision("No."), **settings(folder, mode)) as duck:
        await duck.app.chat.say("rename greet")
        (refused,) = duck.of(ActionFinished)
    assert refused.outcome == "failed"
    assert reason in refused.text
    assert (folder / "one.fake").read_bytes() == ONE.encode()


async def test_o5_a_rename_in_a_protected_file_asks_in_every_mode(tmp_path):
    folder = project(tmp_path)
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / ".github/workflows/ci.fake").write_text("greet\n", "utf-8")
    rename = code("rename", symbol="greet", to="hail")
    async with engine(folder, decision("", rename), mode="edits", **settings(folder)) as duck:
        assert await duck.app.chat.say("rename greet") == "awaiting_approval"
        assert duck.state.approval.because == "protected"


async def test_o5_new_findings_come_with_the_edit_or_the_next_result_and_only_once(tmp_path):
    folder = project(tmp_path)
    (folder / "two.fake").write_text("BROKEN_BEFORE\n", "utf-8")
    broken = action("edit_file", path="two.fake", edits=[{"find": "BEFORE", "replace": "BEFORE\nBROKEN_NOW"}])
    again = action("read_file", path="one.fake")
    answers = [decision("", code("definition", symbol="greet")), decision("", broken)]
    answers += [decision("", again) for _ in range(3)]
    async with engine(folder, *answers, decision("Done."), **settings(folder)) as duck:
        await duck.app.chat.say("break it")
        told = "\n".join(one.text for one in duck.of(ActionFinished))
        checks = [one for event in duck.of(Evaluated) for one in event.results if one.kind == "diagnostic"]
    assert told.count("two.fake:2: error: BROKEN_NOW") <= 1
    assert "BROKEN_BEFORE\n" not in told.partition("New since this request began")[2]
    assert [one.detail for one in checks[:1]] == ["two.fake:2: error: BROKEN_NOW"]


async def test_o5_a_result_never_names_errors_of_an_earlier_text(tmp_path):
    """The server still looks at the edit that mends the error: its last word was about the text before."""
    folder, gate = project(tmp_path), Gate(tmp_path / "gate")
    broken = action("edit_file", path="two.fake", edits=[{"find": "greet greet", "replace": "BROKEN"}])
    mended = action("edit_file", path="two.fake", edits=[{"find": "BROKEN", "replace": "SLOW"}])
    answers = (decision("", broken), gate.hold(decision("", mended)), decision("Done."))
    async with engine(folder, *answers, **settings(folder)) as duck:
        work = asyncio.create_task(duck.app.chat.say("mend it"))
        await gate.wait_until_asked()
        assert [one.detail for one in await duck.app.code.left()] == ["two.fake:1: error: BROKEN"]
        gate.open()
        await work
        first, second = duck.of(ActionFinished)
    assert "BROKEN" not in first.text + second.text


async def test_o5_without_files_or_names_of_a_language_no_server_is_started(tmp_path):
    folder = project(tmp_path)
    write = action("write_file", path="notes.md", content="x\n")
    async with engine(folder, decision("", write), decision("Done."), **settings(folder)) as duck:
        await duck.app.chat.say("write notes")
    assert started(folder) == 0


async def test_o5_prompts_list_the_tools_only_if_a_server_fits_the_files(tmp_path):
    folder = project(tmp_path)
    async with engine(folder, decision("hi"), **settings(folder)) as duck:
        with_server = [tool for tool in duck.app.code.tools() if not tool.hidden and not tool.by_program]
    async with engine(folder, decision("hi")) as duck:
        without = duck.app.code.tools()
    async with engine(folder, decision("hi"), code={"enabled": False}) as duck:
        assert duck.app.code.tools() == ()
    names = ["code.definition", "code.references", "code.rename", "code.diagnostics"]
    assert [tool.operation for tool in with_server] == names
    assert all(tool.hidden or tool.by_program for tool in without)


async def test_o5_without_a_server_a_name_is_searched_in_the_text(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("def greet():\n    pass\n", "utf-8")
    asked = (code("definition", symbol="greet"), code("references", symbol="greet"))
    rename = code("rename", symbol="greet", to="hail")
    answers = (decision("", *asked), decision("", rename), decision("No."))
    async with engine(folder, *answers) as duck:
        await duck.app.chat.say("where is greet?")
        defined, used, renamed = duck.of(ActionFinished)
    assert defined.text.startswith("(No language server is installed; this is a search of the text.)")
    assert "1:def greet():" in defined.text
    assert "1:def greet():" in used.text
    assert renamed.text.startswith("No language server is installed, so nothing was renamed.")


BASEDPYRIGHT = Path(sys.executable).with_name("basedpyright-langserver")


@pytest.mark.skipif(not BASEDPYRIGHT.exists(), reason="basedpyright is not installed")
async def test_o5_a_caller_left_behind_by_a_changed_signature_counts_against_done(tmp_path):
    """With a real server, in the sandbox of this machine."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shop.py").write_text("def 合計(a: int) -> int:\n    return a\n", "utf-8")
    (folder / "caller.py").write_text('from shop import 合計\n\nprint("🦆", 合計(1))\n', "utf-8")
    edit = action("edit_file", path="shop.py", edits=[{"find": "(a: int)", "replace": "(a: int, b: int)"}])
    looks = (code("definition", symbol="合計", path="caller.py:3"), code("references", symbol="合計"))
    path = os.pathsep.join((str(BASEDPYRIGHT.parent), "/usr/bin", "/bin"))
    answers = (decision("", *looks), decision("", edit), *[decision("Done.")] * 3)
    async with engine(folder, *answers, path=path) as duck:
        if (await duck.app.shell.sandbox()).level == "none":
            pytest.skip("no sandbox here, so no language server is started")
        assert await duck.app.chat.say("add b") == "not_satisfied"
        defined, used, *_ = duck.of(ActionFinished)
        (result,) = [one for one in duck.of(Evaluated)[0].results if one.kind == "diagnostic"]
    assert "shop.py (lines 1-2" in defined.text
    assert used.text.startswith("3 references in 2 files, as basedpyright knows them")
    assert (result.name, result.path, result.state, result.binding) == (
        "basedpyright",
        "caller.py",
        "failed",
        True,
    )
    assert 'Argument missing for parameter "b"' in result.detail


GUESSED = """import random


def pick(level):
    moves = list(zip([1], [2]))
    if not moves:
        return None
    return random.choice(moves)


def place(row, column, stone):
    return row + column


"""
KEPT = "print(place(1, 2, 3))\n"


@pytest.mark.skipif(not BASEDPYRIGHT.exists(), reason="basedpyright is not installed")
@every_row(
    ("edits", "counts"),
    [
        (
            [
                {
                    "find": KEPT,
                    "replace": f"{KEPT}print(place(*pick(1), 3))\nmax([1], key=None, default='')()\n",
                }
            ],
            False,
        ),
        ([{"find": "column, stone", "replace": "column, stone, colour"}], True),
    ],
)
async def test_o5_a_call_in_new_code_that_a_server_doubts_is_no_proof_and_an_old_call_left_behind_is(
    edits, counts, tmp_path
):
    """New code is judged by running it: types that the code does not state are guesses of the server."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "game.py").write_text(GUESSED + KEPT, "utf-8")
    path = os.pathsep.join((str(BASEDPYRIGHT.parent), "/usr/bin", "/bin"))
    edit = action("edit_file", path="game.py", edits=edits)
    async with engine(folder, decision("", edit), *[decision("Done.")] * 3, path=path) as duck:
        if (await duck.app.shell.sandbox()).level == "none":
            pytest.skip("no sandbox here, so no language server is started")
        await duck.app.chat.say("change the game")
        (result,) = [one for one in duck.of(Evaluated)[0].results if one.kind == "diagnostic"]
    assert (result.name, result.binding, "reportCallIssue" in result.detail) == ("basedpyright", counts, True)
