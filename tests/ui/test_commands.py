"""M2, J7, L2: slash commands: their table, their help in both languages, their actions and suggestions."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from duckflow.domain.commands import ForgetMemories, RateRequest, SessionResult, SetEffort
from duckflow.domain.events import MemoryKept
from duckflow.domain.extensions import CustomCommand, Extensions, ServerReport
from duckflow.domain.questions.approval import ApprovalScope
from duckflow.domain.session_client import EarlierSession, PastMessage, Permission
from duckflow.domain.state import AgentState, Request
from duckflow.domain.work.memory import Memory
from duckflow.i18n.catalogue import entries, set_language
from duckflow.ui.commands.actions import (
    ACTIONS,
    CommandContext,
    dispatch_command,
    dispatch_in_turn,
    show_difference,
)
from duckflow.ui.commands.completion import Suggestions
from duckflow.ui.commands.pickers import pick_for
from duckflow.ui.commands.table import (
    COMMANDS,
    TypedCommand,
    find_command,
    find_custom,
    meant_command,
    read_command,
)
from duckflow.ui.input.picker import Choice, Picker
from duckflow.ui.output.text_width import width_of
from duckflow.ui.screen import Screen
from duckflow.ui.views.events import Describer
from fakes.conversation import conversation, ready
from fakes.engine import action, decision
from fakes.keyboard import FakeWriter
from fakes.rows import every_row

SPEC = "help status goal plan tasks diff undo mode model cost memory history resume config quit"


def test_M2_every_command_is_there_with_an_action_and_help_in_both_languages():
    assert set(SPEC.split()) <= set(COMMANDS)
    assert set(COMMANDS) == set(ACTIONS)
    for language in ("en", "ja"):
        known = entries(language)
        assert all(f"commands.{name}" in known for name in COMMANDS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/help", TypedCommand("help")),
        ("/Mode plan", TypedCommand("mode", "plan")),
        ("/nonsense", TypedCommand("nonsense")),
        ("／help", TypedCommand("help")),
        ("／ｍｏｄｅ　plan", TypedCommand("mode", "plan")),
        ("／モード plan", TypedCommand("モード", "plan")),
        ("/ヘルプ", TypedCommand("ヘルプ")),
        ("/", TypedCommand("")),
        ("/usr/bin is a path", None),
        ("/etc hosts", None),
        ("/home is full", None),
        ("/etc/hosts is empty, why?", None),
        ("/usr/bin/env python3 is missing", None),
        ("/app.log shows an error", None),
        ("/* a comment */ stays", None),
        ("/ or not", None),
        ("/nonsense with words", TypedCommand("nonsense", "with words")),
        ("／nonsense　with words", TypedCommand("nonsense", "with words")),
        ("/要約 この会話", TypedCommand("要約", "この会話")),
        ("/modle plan", TypedCommand("modle", "plan")),
        ("/redo", TypedCommand("undo", "redo")),
        ("/やり直し", TypedCommand("undo", "redo")),
        ("/undo やり直し", TypedCommand("undo", "redo")),
        ("／取り消し やり直し", TypedCommand("undo", "redo")),
        ("hello /help", None),
        ("/help\nand more", None),
        ("/mcp.notes.visit", None),
        ("/mcp", TypedCommand("mcp")),
    ],
)
def test_a_line_is_a_command_or_a_message(line: str, expected: TypedCommand | None):
    assert read_command(line) == expected


def test_M2_an_unknown_command_with_words_is_not_sent_and_says_so():
    writer = FakeWriter()
    context = CommandContext(SimpleNamespace(), writer, Screen(writer), lambda session: None)  # type: ignore[arg-type]
    for line, said in (
        ("/nonsense with words", "no command /nonsense. /help"),
        ("/histroy of it", "Did you mean /history?"),
    ):
        typed = read_command(line)
        assert typed is not None
        assert dispatch_command(context, typed) is None
        shown = " ".join(writer.texts[-1].split())
        assert said in shown
        assert "begin it with another word" in shown


def test_a_command_is_found_by_its_beginning_and_a_mistake_gets_the_nearest():
    assert find_command("und") is COMMANDS["undo"]
    assert find_command("exit") is COMMANDS["quit"]
    assert find_command("mod") is None, "mode or model"
    assert find_command("ヘルプ") is COMMANDS["help"]
    assert find_command("元に戻す") is COMMANDS["undo"]


def test_M1_a_wrong_name_suggests_the_command_that_people_mean_by_it():
    meant = {
        "statsu": "status",
        "exitt": "quit",
        "qiut": "quit",
        "revert": "undo",
        "settings": "config",
        "permissions": "permissions",
        "usage": "help",
        "sesions": "resume",
        "終わり": "quit",
        "xyzzy": None,
        "init": "init",
    }
    assert {name: meant_command(name) for name in meant} == meant


def suggested(typed: str) -> list[str]:
    server = ServerReport(name="notes", status="ready", what="x", prompts=("visit", "plan"))
    engine: Any = SimpleNamespace(
        files=lambda: ["src/app.py", "src/deep/文書.md", "README.md", "notes:memo://today"],
        models=lambda: ["embedded", "openai:gpt-6.1"],
        sessions=lambda: [EarlierSession("3f2a", "a title", datetime.now(UTC))],
        extensions=Extensions(),
        servers=lambda: [server],
    )
    found = Suggestions(engine).get_completions(Document(typed), CompleteEvent())
    return [completion.text for completion in found]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/st", ["/status"]),
        ("/mode e", ["edits"]),
        ("/effort l", ["low"]),
        ("／st", ["/status"]),
        ("/ヘル", ["/help"]),
        ("／じ", ["/status"]),
        ("／へる", ["/help"]),
        ("/モード e", ["edits"]),
        ("/model o", ["openai:gpt-6.1"]),
        ("/resume ", ["3f2a"]),
        ("look at @app", ["@src/app.py"]),
        ("見て@文書", ["@src/deep/文書.md"]),
        ("@read", ["@README.md"]),
        ("/mcp.notes.v", ["/mcp.notes.visit"]),
        ("what is @notes:t", ["@notes:memo://today"]),
        ("plain words", []),
        ("mail me@home.org", []),
    ],
)
def test_suggestions_follow_what_is_typed(typed: str, expected: list[str]):
    assert suggested(typed) == expected


async def test_M2_history_tells_of_the_open_request_and_diff_of_what_it_does_not_know():
    async def nothing(*, session: bool) -> str:
        return ""

    earlier = [SimpleNamespace(session_id="e1", title="", updated=datetime.now(UTC))]
    state = AgentState(session_id="s", request=Request(request_id="r", text="Fix\nit"))
    engine = SimpleNamespace(state=state, sessions=lambda: earlier, diff=nothing)
    writer = FakeWriter()
    context = CommandContext(engine, writer, Screen(writer), lambda session: None)  # type: ignore[arg-type]
    ACTIONS["history"](context, "")
    assert writer.text.strip() == "Fix it", "and no session in which nothing was said"
    await show_difference(context, "all")
    assert writer.text.endswith("/diff all.")
    await show_difference(context, "session")
    assert writer.text.endswith("Nothing was changed.")


@every_row(
    ("typed", "told", "shown"),
    [
        ("high", ["high"], ""),
        ("HIGH", ["high"], ""),
        ("auto", ["auto"], ""),
        ("", [], "Effort medium: models think for a while."),
        ("huge", [], "There is no effort huge. Choose one of: auto, low, medium, high."),
    ],
)
def test_K6_the_effort_is_chosen_or_shown_by_a_command(typed: str, told: list[str], shown: str):
    sent: list[SetEffort] = []
    engine: Any = SimpleNamespace(send=sent.append, state=AgentState(effort="medium"))
    writer = FakeWriter()
    context = CommandContext(engine, writer, Screen(writer), lambda _: None)
    command = find_command("思考量")
    assert command is not None
    ACTIONS[command.name](context, typed)
    assert [one.effort for one in sent] == told
    assert writer.text == shown


async def run(name: str, argument: str, **client: Any) -> str:
    """Run a command with a client that has these attributes; return its output."""
    context: Any = CommandContext(SimpleNamespace(**client), FakeWriter(), None, lambda _: None)
    await dispatch_in_turn(context, TypedCommand(name, argument))
    return context.writer.text


async def test_M2_words_behind_a_command_that_takes_none_are_not_lost_silently():
    for name, argument in (("plan", "add a CSV export"), ("計画", "CSV を足す"), ("init", "日本語で")):
        said = await run(name, argument, state=AgentState())
        assert said.startswith(f"/{name} takes no words, so nothing was done."), said
    assert "/undo" in await run("help", "undo", extensions=Extensions(), servers=tuple)


async def test_M2_resume_without_another_session_says_so():
    said = await run("resume", "", state=AgentState(session_id="s"), sessions=tuple)
    assert said == "There is no other session in this folder."


async def rate(argument: str, *, there: bool = True) -> tuple[list[int], str]:
    given: list[int] = []

    async def keep(command: RateRequest) -> SessionResult:
        given.append(command.rating)
        return SessionResult(objection="" if there else "stats.rate_nothing")

    said = await run("rate", argument, send=keep)
    return given, said


async def test_J7_a_rating_is_a_number_from_1_to_10_and_anything_else_is_explained():
    for argument in ("1", "10", "８"):
        assert await rate(argument) == ([int(argument)], f"Thank you: {int(argument)} out of 10.")
    for argument in ("", "0", "11", "-1", "good", "8.5", "²"):
        given, said = await rate(argument)
        assert (given, "/rate 8" in said) == ([], True), argument
    assert (await rate("8", there=False))[1] == "There is no request to rate yet."


WHEN = datetime(2026, 3, 4, 12, tzinfo=UTC)
KEPT = [
    Memory(id=12, kind="worked", text="make check", workspace="/w", kept=WHEN),
    Memory(id=7, kind="preference", text="Use tabs", workspace="", kept=WHEN),
]


async def remember(argument: str, kept: list[Memory]) -> tuple[list[int], str]:
    gone: list[int] = []

    async def forget(command: ForgetMemories) -> SessionResult:
        gone.extend(command.numbers)
        return SessionResult(forgotten=len(command.numbers))

    state = SimpleNamespace(workspace="/w")
    said = await run("memory", argument, memories=lambda: kept, send=forget, state=state)
    return gone, said


async def test_L2_memories_are_listed_a_line_each_and_deleted_by_number():
    shown = "12  2026-03-04  worked: make check\n 7  2026-03-04  preference [everywhere]: Use tabs"
    assert await remember("", KEPT) == ([], shown)
    set_language("ja")
    assert await remember("", KEPT) == (
        [],
        "12  2026-03-04  成功: make check\n 7  2026-03-04  好み [どこでも]: Use tabs",
    )
    set_language("en")
    assert (await remember("", []))[1] == "Nothing is remembered yet."
    assert await remember("delete 7 12", KEPT) == ([7, 12], "Deleted from memory: 2")
    for argument in ("delete", "delete x", "delete 7 x", "erase 7", "delete -1"):
        gone, said = await remember(argument, KEPT)
        assert (gone, "/memory delete" in said) == ([], True), argument


def test_L2_a_lesson_is_announced_and_a_preference_the_user_was_asked_about_is_not():
    learned = MemoryKept(kind="worked", text="a\nb", workspace="/w")
    told = Describer()(learned)
    assert told is not None
    assert told.text == "🦆 Remembered for later in this folder: a b"
    assert Describer()(learned.model_copy(update={"kind": "preference"})) is None


@pytest.mark.parametrize("language", ["en", "ja"])
def test_M2_the_help_fits_60_columns_and_names_every_command_in_both_languages(language: str):
    set_language(language)
    writer = FakeWriter(columns=60)
    engine: Any = SimpleNamespace(extensions=Extensions(), servers=list)
    ACTIONS["help"](CommandContext(engine, writer, Screen(writer), lambda session: None), "")
    lines = writer.text.split("\n")
    assert max(map(width_of, lines)) <= 60
    for command in COMMANDS.values():
        assert any(
            line.startswith(" ".join(["", "", command.name, *command.aliases[:1]]).replace("  ", "  /", 1))
            for line in lines
        )


def test_M2_a_command_that_chooses_offers_lines_to_choose_from():
    now = datetime(2026, 1, 2, tzinfo=UTC)
    kinds = [ApprovalScope(what="command", scope="pytest"), ApprovalScope(what="edits", scope="src")]
    engine: Any = SimpleNamespace(
        state=AgentState(session_id="s", model="a"),
        sessions=lambda: [EarlierSession("s", "this one", now), EarlierSession("e1", "Fix it", now)],
        conversations=lambda: {"e1": "the parser is broken"},
        messages=lambda: [PastMessage(1, 1, now, "first"), PastMessage(2, 9, now, "second")],
        models=lambda: ["a", "b"],
        permissions=lambda: [Permission(kinds[0]), Permission(kinds[1], "here", "2026-01-02")],
        settings=lambda every: ['ui.notify = "off"  # default'],
        servers=lambda: (ServerReport(name="docs", status="ready", what="docs", allowed=("search",)),),
    )
    wanted = {
        "/resume": ["/resume e1"],
        "/再開": ["/resume e1"],
        "/rewind": ["/rewind 2 ?", "/rewind 1 ?"],
        "/rewind 2 ?": ["/rewind 2", "/rewind 2 conversation", "/rewind 2 files"],
        "/model": ["/model a", "/model b"],
        "/permissions": ["/permissions 1 ?", "/permissions 2 ?", "/mcp"],
        "/permissions 1 ?": [
            "/permissions revoke 1",
            "/permissions keep 1",
            "/permissions keep 1 everywhere",
        ],
        "/permissions 2 ?": ["/permissions revoke 2"],
        "/config": ["/config ui.notify"],
    }
    for typed, lines in wanted.items():
        pick = pick_for(engine, typed)
        assert pick is not None, typed
        assert [one.line for one in pick.choices] == lines
    for typed in ("/resume e1", "/rewind 2", "/permissions 3 ?", "/help", "hello"):
        assert pick_for(engine, typed) is None, typed


def test_M2_a_list_is_searched_moved_through_and_cut_to_the_terminal():
    picker = Picker([Choice(f"/resume {n}", f"設定を直す {n}", "2026") for n in range(20)])
    picker.move(-1)
    assert picker.chosen() == "/resume 19"
    lines = ["".join(piece for _, piece in line) for line in picker.lines(40)]
    assert len(lines) == 9
    assert max(map(width_of, lines)) < 40
    assert "20" in lines[-1]
    picker.filter("７ 設定")
    assert picker.chosen() == "/resume 7", "words in any order, as people type them"
    picker.filter("nothing")
    assert picker.chosen() is None
    picker = Picker(
        [Choice("/resume a", "hello"), Choice("/resume b", "hi", searched="the Parser is broken")]
    )
    picker.filter("parser")
    assert picker.chosen() == "/resume b", "what was said is found, too"


def test_a_command_of_ones_own_may_be_called_review_but_not_undo():
    own = [CustomCommand(name=name, body="Read $1.") for name in ("review", "undo")]
    found = find_custom("/review a.py", own)
    assert found is not None
    assert found.body == "Read a.py."
    assert find_custom("/undo", own) is None


def test_a_command_typed_at_a_question_shows_its_result_before_the_answer(folder: Path):
    """And "always" names what it covers, so a question about the next folder is no surprise."""
    write = decision("", action("write_file", path="a.txt", content="neu\n"))
    with conversation(folder, write, decision("Written.")) as terminal:
        ready(terminal)
        terminal.type("Write a.txt\r")
        terminal.wait_for("Allow it?")
        terminal.type("/mode plan\r")
        terminal.wait_for("Mode plan: ")
        terminal.type("/mode ask\r")
        terminal.wait_for("Mode ask: ")
        assert not (folder / "a.txt").exists()
        terminal.type("a\r")
        terminal.wait_for("not asked about again: edits to files")
        terminal.wait_for("Written.")
