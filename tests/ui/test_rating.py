"""J7: a rating in the conversation."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from duckflow.domain.commands import RateRequest, SessionResult
from duckflow.ui.commands.actions import CommandContext, dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand


class FakeWriter:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, shown: str, colour: str | None = None) -> None:
        self.lines.append(shown)


def rate(argument: str, *, there: bool = True) -> tuple[list[int], str]:
    given: list[int] = []

    async def keep(command: RateRequest) -> SessionResult:
        given.append(command.rating)
        return SessionResult(objection="" if there else "stats.rate_nothing")

    context: Any = CommandContext(SimpleNamespace(send=keep), FakeWriter(), None, lambda _: None)
    asyncio.run(dispatch_in_turn(context, TypedCommand("rate", argument)))
    return given, context.writer.lines[-1]


@pytest.mark.parametrize("argument", ["1", "10", "８"])
def test_J7_a_number_from_1_to_10_is_kept(argument):
    assert rate(argument) == ([int(argument)], f"Thank you: {int(argument)} out of 10.")


@pytest.mark.parametrize("argument", ["", "0", "11", "-1", "good", "8.5", "²"])
def test_J7_anything_else_is_explained(argument):
    given, said = rate(argument)
    assert given == []
    assert "/rate 8" in said


def test_J7_without_a_request_there_is_nothing_to_rate():
    assert rate("8", there=False)[1] == "There is no request to rate yet."
