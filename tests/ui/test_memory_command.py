"""L2, M2: /memory in the conversation."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from duckflow.domain.commands import ForgetMemories, SessionResult
from duckflow.domain.events import MemoryKept
from duckflow.domain.work.memory import Memory
from duckflow.i18n.catalogue import set_language
from duckflow.ui.commands.actions import CommandContext, dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand
from duckflow.ui.views.events import Describer
from fakes.keyboard import FakeWriter

WHEN = datetime(2026, 3, 4, 12, tzinfo=UTC)
KEPT = [
    Memory(id=12, kind="worked", text="make check", workspace="/w", kept=WHEN),
    Memory(id=7, kind="preference", text="Use tabs", workspace="", kept=WHEN),
]


def memory_command(argument: str, kept: list[Memory]) -> tuple[list[int], str]:
    gone: list[int] = []

    async def forget(command: ForgetMemories) -> SessionResult:
        gone.extend(command.numbers)
        return SessionResult(forgotten=len(command.numbers))

    client = SimpleNamespace(memories=lambda: kept, send=forget, state=SimpleNamespace(workspace="/w"))
    context: Any = CommandContext(client, FakeWriter(), None, lambda _: None)
    asyncio.run(dispatch_in_turn(context, TypedCommand("memory", argument)))
    return gone, context.writer.text


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        ("en", "12  2026-03-04  worked: make check\n 7  2026-03-04  preference [everywhere]: Use tabs"),
        ("ja", "12  2026-03-04  成功: make check\n 7  2026-03-04  好み [どこでも]: Use tabs"),
    ],
)
def test_L2_what_is_remembered_a_line_each(language, shown):
    set_language(language)
    assert memory_command("", KEPT) == ([], shown)


def test_L2_nothing_remembered_is_said():
    assert memory_command("", [])[1] == "Nothing is remembered yet."


def test_L2_delete_takes_numbers():
    assert memory_command("delete 7 12", KEPT) == ([7, 12], "Deleted from memory: 2")


@pytest.mark.parametrize("argument", ["delete", "delete x", "delete 7 x", "erase 7", "delete -1"])
def test_L2_anything_else_is_explained(argument):
    gone, said = memory_command(argument, KEPT)
    assert gone == []
    assert "/memory delete" in said


def test_L2_what_is_learned_unasked_is_told_and_what_was_asked_about_is_not():
    learned = MemoryKept(kind="worked", text="a\nb", workspace="/w")
    told = Describer()(learned)
    assert told is not None
    assert told.text == "🦆 Remembered for later in this folder: a b"
    assert Describer()(learned.model_copy(update={"kind": "preference"})) is None
