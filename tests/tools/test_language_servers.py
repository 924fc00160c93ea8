"""O5: language servers as programs: faults, requests to the client, positions in a text, and their end."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.code.arguments import CheckFile, FindName
from duckflow.tools.code.positions import TextPositions
from duckflow.tools.code.questions import CodeQuestions
from duckflow.tools.code.rows import FoundServer, ServerRow
from duckflow.tools.code.servers import CodeServers, LanguageServer
from duckflow.tools.code.session import ServerTimes
from fakes import language_server
from fakes.rows import every_row

NO_ACCESS = None


def fake(log: Path, mode: str = "", name: str = "fake") -> FoundServer:
    command = (sys.executable, "-I", "-S", language_server.__file__, str(log), mode)
    return FoundServer(ServerRow(name, command, (".fake",), {"fake": {"colour": "red"}}), sys.executable)


@asynccontextmanager
async def servers(
    folder: Path,
    *modes: str,
    idle_s: float = 600.0,
    answer_s: float = 30.0,
    start_s: float = 30.0,
    memory_mb: int = 4096,
):
    """The servers of a folder, the first of which is asked; without a sandbox, so tests run everywhere."""
    log = folder.parent / "log.jsonl"
    found = [fake(log, mode, f"fake{number or ''}") for number, mode in enumerate(modes or ("",))]
    times = ServerTimes(start_s=start_s, answer_s=answer_s)
    shell = ShellSettings(sandbox="external", memory_mb=memory_mb)
    made = CodeServers(Workspace(folder), found, idle_s, shell, (), {"PATH": ""}, times)
    try:
        yield made, CodeQuestions(made, None)
    finally:
        await made.aclose()


def messages(folder: Path) -> list[dict]:
    lines = (folder.parent / "log.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def project(around: Path) -> Path:
    place = around / "project"
    place.mkdir()
    (place / "one.fake").write_text("def greet\n# 日本語🦆 greet\n", "utf-8")
    (place / "two.fake").write_text("🦆🦆 greet greet\nBROKEN\n", "utf-8")
    return place


@every_row("mode", ["", "utf-8", "utf-32"], ids=lambda mode: mode or "utf-16")
async def test_o5_a_name_behind_japanese_and_emoji_is_found_however_the_server_counts(mode, tmp_path):
    folder = project(tmp_path)
    async with servers(folder, mode) as (_, ask):
        shown = (await ask.definition(FindName(symbol="greet", path="two.fake:1"), NO_ACCESS)).text
        assert "one.fake (lines 1-1" in shown
        uses = (await ask.references(FindName(symbol="greet"), NO_ACCESS)).text
        assert uses.startswith("4 references in 2 files, as fake knows them")


def test_o5_positions_count_as_the_server_does():
    text = "a🦆b\r\n日本\n"
    for encoding, column in (("utf-8", 5), ("utf-16", 3), ("utf-32", 2)):
        positions = TextPositions(text, encoding)
        assert positions.position(2) == {"line": 0, "character": column}
        assert positions.index({"line": 0, "character": column}) == 2
        assert positions.index({"line": 0, "character": 99}) == 3, "not behind the end of its line"
        assert positions.index({"line": 9, "character": 0}) == len(text)
        assert positions.position(text.index("本"))["line"] == 1


FAULTS = {
    "ends": "can't be started: ended with exit code 1; it said: I have no licence",
    "garbage": "can't be started: it wrote something that is no message of a language server",
    "mute": "did not start within 1 s",
    "hangs": "did not answer within 1 s and was stopped",
    "breaks": "ended: ended with exit code 3",
    "errors": "can't do this: it answered: I am not in the mood",
    "breaks JSON": "ended: it wrote a message that is not JSON",
    "panics": "can't be started: ended with exit code 1; it said: error: no toolchain",
}


async def definitions(server: LanguageServer) -> None:
    async with server.use() as session:
        await session.symbols("one.fake")
        await session.definitions("one.fake", {"line": 0, "character": 4})


@every_row("mode", list(FAULTS))
async def test_o5_a_server_that_fails_is_named_with_the_reason_and_leaves_nothing_running(mode, tmp_path):
    folder = project(tmp_path)
    seconds = 1.0 if mode in ("mute", "hangs") else 30.0
    async with servers(folder, mode, start_s=seconds, answer_s=seconds) as (made, _):
        server = made.for_path("one.fake")
        with pytest.raises(ToolError) as failed:
            await definitions(server)
        assert str(failed.value) == f"The language server fake {FAULTS[mode]}."
        assert server.warm == (mode == "errors")


async def test_o5_nonsense_in_an_answer_is_left_out(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "nonsense") as (_, ask):
        with pytest.raises(ToolError, match="fake knows no definition of greet"):
            await ask.definition(FindName(symbol="greet"), NO_ACCESS)
        assert "finds nothing" in (await ask.diagnostics(CheckFile(path="one.fake"), NO_ACCESS)).text


async def test_o5_a_server_that_grows_is_ended_at_the_memory_limit_and_says_so(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "grows", memory_mb=200) as (made, _):
        with pytest.raises(ToolError) as failed:
            await definitions(made.for_path("one.fake"))
        assert str(failed.value) == (
            "The language server fake ended: stopped: it took more than 200 MB of memory."
        )


async def test_o5_another_installed_server_replaces_one_that_fails(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "ends", "") as (made, ask):
        assert made.for_path("one.fake").name == "fake"
        assert "as fake1 knows" in (await ask.references(FindName(symbol="greet"), NO_ACCESS)).text


async def test_o5_without_a_working_server_the_text_is_searched_and_the_reason_is_told(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "ends") as (_, ask):
        said = (await ask.definition(FindName(symbol="greet"), NO_ACCESS)).text
    assert said.startswith("(The language server fake can't be started: ended with exit code 1")
    assert "this is a search of the text.)" in said
    assert "1:def greet" in said


async def test_o5_if_the_search_for_uses_takes_too_long_the_text_is_searched_and_the_reason_is_told(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "searches", answer_s=2.0) as (_, ask):
        said = (await ask.references(FindName(symbol="greet"), NO_ACCESS)).text
    assert said.startswith(
        "(The language server fake did not answer within 2 s and was stopped; this is a search of the text.)"
    )
    assert "2:# 日本語🦆 greet" in said


async def test_o5_uses_of_a_name_with_several_definitions_are_worked_out_once(tmp_path):
    folder = project(tmp_path)
    (folder / "one.fake").write_text("def greet\ndef greet\n", "utf-8")
    async with servers(folder) as (_, ask):
        uses = (await ask.references(FindName(symbol="greet"), NO_ACCESS)).text
    assert uses.startswith("4 references in 2 files")
    assert sum(one.get("method") == "textDocument/references" for one in messages(folder)) == 1


async def test_o5_of_hundreds_of_uses_all_are_counted_and_a_part_is_shown(tmp_path):
    folder = project(tmp_path)
    for number in range(60):
        (folder / f"user{number:02}.fake").write_text("greet\n" * 9, "utf-8")
    async with servers(folder) as (_, ask):
        uses = (await ask.references(FindName(symbol="greet"), NO_ACCESS)).text
    head, *lines = uses.splitlines()
    assert head.startswith("544 references in 62 files")
    assert "user00.fake (9 lines)" in lines
    assert sum(line.endswith(": greet") for line in lines) <= 120
    assert lines[-2].startswith("Not shown, 22 more files: user38.fake (9), ")
    assert lines[-1] == "file_ops.search with path shows the lines with the name in a file or folder."


async def test_o5_a_question_is_asked_again_while_the_server_is_busy(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "busy") as (_, ask):
        assert "def greet" in (await ask.definition(FindName(symbol="greet"), NO_ACCESS)).text


async def test_o5_the_servers_own_questions_are_answered_and_its_edits_refused(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, "asks") as (made, ask):
        await ask.definition(FindName(symbol="greet"), NO_ACCESS)
        await made.aclose()
    answers = {one["id"]: one for one in messages(folder) if "method" not in one}
    assert answers["a"]["result"] == [{"colour": "red"}, {"fake": {"colour": "red"}}]
    assert answers["b"]["result"] is None
    assert answers["c"]["result"] is None
    assert answers["d"]["result"]["applied"] is False
    assert answers["e"]["error"]["code"] == -32601


async def test_o5_the_server_sees_the_files_as_they_are_now(tmp_path):
    folder = project(tmp_path)
    async with servers(folder) as (_, ask):
        await ask.definition(FindName(symbol="greet"), NO_ACCESS)
        (folder / "one.fake").write_text("\n\ndef greet\n", "utf-8")
        (folder / "three.fake").write_text("def other\n", "utf-8")
        (folder / "two.fake").unlink()
        assert "lines 3-3" in (await ask.definition(FindName(symbol="greet"), NO_ACCESS)).text
    told = [one["params"]["changes"] for one in messages(folder) if one.get("method", "").endswith("Files")]
    kinds = {one["uri"].rpartition("/")[2]: one["type"] for one in told[-1]}
    assert kinds == {"one.fake": 2, "three.fake": 1, "two.fake": 3}


async def test_o5_an_idle_server_is_stopped_and_started_again_when_needed(tmp_path):
    folder = project(tmp_path)
    async with servers(folder, idle_s=0.1) as (made, ask):
        await ask.definition(FindName(symbol="greet"), NO_ACCESS)
        while made.for_path("one.fake").warm:
            await asyncio.sleep(0.01)
        assert "def greet" in (await ask.definition(FindName(symbol="greet"), NO_ACCESS)).text
    assert sum(one.get("method") == "initialize" for one in messages(folder)) == 2


async def test_o5_findings_are_listed_and_a_file_without_a_server_says_so(tmp_path):
    folder = project(tmp_path)
    (folder / "text.txt").write_text("x", "utf-8")
    async with servers(folder) as (_, ask):
        said = (await ask.diagnostics(CheckFile(path="two.fake"), NO_ACCESS)).text
        assert said == "1 findings of fake\ntwo.fake:2: error: BROKEN"
        assert "finds nothing" in (await ask.diagnostics(CheckFile(path="one.fake"), NO_ACCESS)).text
        with pytest.raises(ToolError, match=r"No language server for \.txt files is installed"):
            await ask.diagnostics(CheckFile(path="text.txt"), NO_ACCESS)


async def test_o5_a_name_with_several_definitions_is_asked_about_again_with_all_of_them(tmp_path):
    folder = project(tmp_path)
    (folder / "three.fake").write_text("\ndef greet\n", "utf-8")
    (folder / "two.fake").unlink()
    async with servers(folder, "strict") as (_, ask):
        shown = (await ask.definition(FindName(symbol="greet"), NO_ACCESS)).text
        assert "one.fake (lines 1-1" in shown
        assert "three.fake (lines 2-2" in shown
        with pytest.raises(ToolError, match=r"several greet: greet \(one.fake:1\), greet \(three.fake:2\)"):
            await ask.references(FindName(symbol="greet"), NO_ACCESS)
        uses = (await ask.references(FindName(symbol="greet", path="three.fake:2"), NO_ACCESS)).text
        assert "three.fake (1 line)" in uses


async def test_o5_secret_files_are_not_shown_to_a_server(tmp_path):
    folder = project(tmp_path)
    (folder / ".env.fake").write_text("def greet\n", "utf-8")
    async with servers(folder) as (_, ask):
        with pytest.raises(ToolError, match="protected"):
            await ask.diagnostics(CheckFile(path=".env.fake"), NO_ACCESS)
