"""`duckflow memory`: shows, changes and deletes what Duckflow keeps for later sessions (L2)."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from duckflow.cli.commands.flags import JsonFlag, argument, option
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

if TYPE_CHECKING:
    from duckflow.store.memory import Memories

commands = typer.Typer(help=text("help.memory"), no_args_is_help=True)


@commands.command("list", help=text("help.memory_list"))
def list_all(*, json: JsonFlag = False) -> None:
    """List all memories, the newest first."""
    from duckflow.ui.views.tables import memory_lines  # noqa: PLC0415 - heavy, and not for --help

    with _memories() as memories:
        found = memories.listed()
    for line in [one.model_dump_json() for one in found] if json else memory_lines(found):
        echo(line)


@commands.command("edit", help=text("help.memory_edit"))
def edit(
    wanted: Annotated[str, argument("ID", "memory")],
    words: Annotated[str, argument("TEXT", "memory_text")],
) -> None:
    """Replace the text of a memory."""
    from duckflow.cli.secrets import without_secrets  # noqa: PLC0415 - heavy, and not for --help

    with _memories() as memories:
        changed = memories.edit(_number(wanted), without_secrets(words))
    echo(text("memory.changed", id=changed.id, text=changed.text))


@commands.command("delete", help=text("help.memory_delete"))
def delete(
    wanted: Annotated[list[str] | None, argument("[ID]...", "memory")] = None,
    *,
    everything: Annotated[bool, option("all", "memory_all")] = False,
) -> None:
    """Delete some memories, or all."""
    if bool(wanted) == everything:
        raise UsageError("memory.which")
    with _memories() as memories:
        numbers = [_number(one) for one in wanted or ()]
        gone = memories.clear() if everything else len(memories.delete(numbers))
    echo(text("memory.deleted", count=gone))


def _number(wanted: str) -> int:
    if not wanted.isdecimal():
        raise UsageError("memory.no_such", id=wanted)
    return int(wanted)


@contextmanager
def _memories() -> Generator["Memories"]:
    from duckflow.app.places import open_log  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.store.memory import Memories  # noqa: PLC0415 - as above

    with closing(open_log()) as log:
        yield Memories(log.database)
