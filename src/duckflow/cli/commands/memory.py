"""`duckflow memory`: what is kept for later sessions, to be seen, changed and deleted (L2)."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from duckflow.cli.flags import JsonFlag, argument, option
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

if TYPE_CHECKING:
    from duckflow.store.memory import Memories

commands = typer.Typer(help=text("help.memory"), no_args_is_help=True)
IdArgument = Annotated[str, argument("ID", "memory")]
IdsArgument = Annotated[list[str] | None, argument("[ID]...", "memory")]
TextArgument = Annotated[str, argument("TEXT", "memory_text")]
AllFlag = Annotated[bool, option("all", "memory_all")]


@commands.command("list", help=text("help.memory_list"))
def list_all(*, json: JsonFlag = False) -> None:
    """All texts, the newest first."""
    from duckflow.ui.views.tables import memory_lines  # noqa: PLC0415 - heavy, and not for --help

    with _memories() as memories:
        found = memories.listed()
    for line in [one.model_dump_json() for one in found] if json else memory_lines(found):
        echo(line)


@commands.command("edit", help=text("help.memory_edit"))
def edit(wanted: IdArgument, words: TextArgument) -> None:
    """Put another text in the place of one."""
    from duckflow.cli.secrets import without_secrets  # noqa: PLC0415 - heavy, and not for --help

    with _memories() as memories:
        changed = memories.edit(_number(wanted), without_secrets(words))
    echo(text("memory.changed", id=changed.id, text=changed.text))


@commands.command("delete", help=text("help.memory_delete"))
def delete(wanted: IdsArgument = None, *, everything: AllFlag = False) -> None:
    """Delete some texts, or all."""
    if bool(wanted) == everything:
        raise UsageError("memory.which")
    with _memories() as memories:
        gone = (
            memories.clear() if everything else len(memories.delete([_number(one) for one in wanted or ()]))
        )
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
