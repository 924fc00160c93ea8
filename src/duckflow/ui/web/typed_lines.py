"""Lines typed on the web page: slash commands run as in the terminal, and their output goes to the page."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from duckflow.domain.habits import habit_of
from duckflow.domain.session_client import SessionClient
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext, dispatch_command
from duckflow.ui.commands.completion import Suggestions
from duckflow.ui.commands.pickers import pick_for
from duckflow.ui.commands.table import (
    TypedCommand,
    find_command,
    find_custom,
    is_bare_command,
    read_command,
    read_prompt,
)
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.output.escaping import harmless, on_one_line
from duckflow.ui.output.writer import Colour, Writer
from duckflow.ui.screen import Screen
from duckflow.ui.web.session_view import Payload, rows_of

_ELSEWHERE = frozenset({"quit", "expand"})
"""Commands about the terminal itself, which the page does not offer."""
_SHOWN_AS_EVENT = frozenset({"undo", "rewind"})
"""Commands whose result the conversation shows as an event, so that their output would repeat it."""
_COLUMNS, _ROWS = 88, 40
_MOST_SUGGESTED = 40


class _CollectingWriter(Writer):
    """Writer that keeps the lines for the page."""

    def __init__(self) -> None:
        super().__init__(self._keep, lambda: (_COLUMNS, _ROWS))
        self.shown: list[str] = []
        self.warns = False

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """Keep a paragraph, and note whether it is a warning or an error."""
        self.warns = self.warns or colour in ("yellow", "red")
        super().line(shown, colour)

    def _keep(self, texts: Iterable[str]) -> None:
        self.shown += [line for one in texts for line in harmless(one).rstrip("\n").split("\n")]


class _FieldKeyboard(Keyboard):
    """Keyboard of a page: only the text that a command puts into the message field counts."""

    def __init__(self) -> None:
        super().__init__()
        self.field = ""

    def swap_line(self, typed: str) -> str:
        """Keep the text for the message field."""
        before, self.field = self.field, typed
        return before


class LineResult(NamedTuple):
    """Result of a typed line that was no message."""

    lines: Sequence[str] = ()
    warns: bool = False
    """True if the lines say why nothing was done."""
    difference: Sequence[object] = ()
    field: str = ""
    """Text for the message field."""
    goes_to: str | None = None
    """Id of the session to show next; empty for the start page."""
    choices: Payload | None = None
    """List to choose from; the line of the chosen entry is typed next."""


def is_message(line: str, client: SessionClient) -> bool:
    """Return whether a line is for the model. Slash commands, words for a shell and `!` lines are not."""
    if find_custom(line, client.extensions.commands) is not None or read_prompt(line) is not None:
        return True
    return not (line.startswith("!") or habit_of(line) or is_bare_command(line) or read_command(line))


async def run_line(client: SessionClient, line: str, *, guest: bool) -> LineResult:
    """Carry out a line that is no message. A UserError passes through."""
    if line.startswith("!"):
        return _refused("web.command.bang")
    if (habit := habit_of(line)) is not None and habit != "help":
        return _refused(f"web.command.{habit}", line=on_one_line(line))
    if habit is None and is_bare_command(line):
        return _refused("habits.command", command=f"/{on_one_line(line.strip())}")
    line = "/help" if habit else line
    if (typed := read_command(line)) is None:
        return LineResult()
    if (pick := pick_for(client, line)) is not None and not guest:
        choices = [{"line": one.line, "shown": one.shown, "remark": one.remark} for one in pick.choices]
        return LineResult(choices={"question": pick.question, "choices": choices})
    return await _run(client, typed, guest=guest)


async def _run(client: SessionClient, typed: TypedCommand, *, guest: bool) -> LineResult:
    command = find_command(typed.name)
    if command is not None and command.name in _ELSEWHERE:
        return _refused("web.command.terminal", command=f"/{command.name}")
    if command is not None and command.name == "diff" and typed.argument in ("", "session") and not guest:
        rows = rows_of(await client.diff(session=typed.argument == "session"))
        return LineResult(difference=rows) if rows else LineResult((text("diff.none"),))
    writer, keyboard, leaves = _CollectingWriter(), _FieldKeyboard(), list[str | None]()
    context = CommandContext(client, writer, Screen(writer), leaves.append, guest=guest, keyboard=keyboard)
    before = client.state.seq
    work = dispatch_command(context, typed)
    if work is not None:
        await work
    repeats = command is not None and command.name in _SHOWN_AS_EVENT and client.state.seq != before
    return LineResult(
        lines=() if repeats else tuple(writer.shown),
        warns=writer.warns,
        field=keyboard.field,
        goes_to=leaves[0] if leaves else None,
    )


def _refused(key: str, **values: str) -> LineResult:
    return LineResult((text(key, **values),), warns=True)


def suggestions(client: SessionClient, typed: str) -> list[Payload]:
    """Return completions of the text before the cursor: commands, their arguments, and files after an @."""
    from prompt_toolkit.completion import CompleteEvent  # noqa: PLC0415 - only while someone types
    from prompt_toolkit.document import Document  # noqa: PLC0415 - as above

    found = Suggestions(client).get_completions(Document(typed), CompleteEvent())
    shown = [
        {
            "insert": one.text,
            "start": one.start_position,
            "shown": harmless(one.display_text),
            "does": harmless(one.display_meta_text),
        }
        for one in found
        if one.text.removeprefix("/") not in _ELSEWHERE
    ]
    return shown[:_MOST_SUGGESTED]
