"""`duckflow audit`: what was asked, allowed, refused and done, and whether that record is whole (G6)."""

from typing import Annotated

import typer

from duckflow.cli.flags import JsonFlag
from duckflow.i18n.catalogue import text

commands = typer.Typer(help=text("help.audit"), no_args_is_help=True)
SessionFlag = Annotated[
    str | None, typer.Option("--session", metavar="ID", help=text("help.option.audit_session"))
]


@commands.command("show", help=text("help.audit_show"))
def show(session: SessionFlag = None, *, json: JsonFlag = False) -> None:
    """The entries, oldest first."""
    from duckflow.cli.reports.audit import print_entries  # noqa: PLC0415 - heavy, and not for --help

    print_entries(session, json=json)


@commands.command("verify", help=text("help.audit_verify"))
def verify(*, json: JsonFlag = False) -> None:
    """Whether nothing was changed, removed or cut off; exit code 1 if something was."""
    from duckflow.cli.reports.audit import print_check  # noqa: PLC0415 - heavy, and not for --help

    raise typer.Exit(print_check(json=json))


@commands.command("export", help=text("help.audit_export"))
def export() -> None:
    """Every entry with its hash, one JSON object a line."""
    from duckflow.cli.reports.audit import print_export  # noqa: PLC0415 - heavy, and not for --help

    print_export()


@commands.command("stats", help=text("help.audit_stats"))
def stats(*, json: JsonFlag = False) -> None:
    """How often what was asked, approved, refused and done."""
    from duckflow.cli.reports.audit import print_stats  # noqa: PLC0415 - heavy, and not for --help

    print_stats(json=json)
