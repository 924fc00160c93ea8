"""The commands of the conversation as data: their names, what they take, and when they may run."""

import difflib
from collections.abc import Mapping
from typing import Literal, NamedTuple

from duckflow.domain.modes import MODES

Completes = Literal["nothing", "modes", "models", "sessions", "scopes"]


class Command(NamedTuple):
    """One command. `now` ones are obeyed while work goes on, the others wait their turn."""

    name: str
    takes: str = ""
    """What may follow, as the help shows it."""
    completes: Completes = "nothing"
    now: bool = True


COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command("help"),
        Command("status"),
        Command("goal"),
        Command("plan"),
        Command("tasks"),
        Command("cancel"),
        Command("diff", "[session]", "scopes", now=False),
        Command("undo", "[N|all|redo]", now=False),
        Command("mode", f"[{'|'.join(MODES)}]", "modes"),
        Command("model", "[NAME]", "models", now=False),
        Command("cost"),
        Command("rate", "1-10", now=False),
        Command("memory", "[delete ID]", now=False),
        Command("history"),
        Command("expand"),
        Command("config"),
        Command("new", now=False),
        Command("resume", "[ID]", "sessions", now=False),
        Command("quit"),
    )
}
"""In the order of the help. `commands.NAME` in the catalogues says what each does."""

_ALSO = {"exit": "quit", "q": "quit", "?": "help"}


class Typed(NamedTuple):
    """A command as it was typed."""

    name: str
    argument: str = ""


def read_command(line: str) -> Typed | None:
    """The command a line is, known or not; None for a message. A path is a message."""
    if not line.startswith("/"):
        return None
    word, _, argument = line[1:].partition(" ")
    if "/" in word or "\n" in line or (argument and word.casefold() not in COMMANDS):
        return None
    return Typed(word.casefold(), argument.strip())


def find_command(name: str) -> Command | None:
    """The command of this name, or the only one that begins so."""
    if name in _ALSO:
        return COMMANDS[_ALSO[name]]
    begun = [command for command in COMMANDS.values() if name and command.name.startswith(name)]
    return COMMANDS.get(name) or (begun[0] if len(begun) == 1 else None)


def nearest_command(name: str) -> str | None:
    """The name that was probably meant."""
    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    return near[0] if near else None
