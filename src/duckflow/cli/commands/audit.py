"""`duckflow audit`: the record of questions, answers and actions, and the check that it is intact (G6)."""

from typing import Annotated

import typer

from duckflow.cli.commands.flags import JsonFlag, option
from duckflow.i18n.catalogue import text

commands = typer.Typer(help=text("help.audit"), no_args_is_help=True)


@commands.command("show", help=text("help.audit_show"))
def show(
    session: Annotated[str | None, option("session", "audit_session", metavar="ID")] = None,
    *,
    json: JsonFlag = False,
) -> None:
    """Print the entries, oldest first."""
    from duckflow.cli.reports.audit import print_entries  # noqa: PLC0415 - heavy, and not for --help

    print_entries(session, json=json)


@commands.command("verify", help=text("help.audit_verify"))
def verify(*, json: JsonFlag = False) -> None:
    """Check that no entry was changed or removed; exit code 1 if one was."""
    from duckflow.cli.reports.audit import print_check  # noqa: PLC0415 - heavy, and not for --help

    raise typer.Exit(print_check(json=json))


@commands.command("export", help=text("help.audit_export"))
def export() -> None:
    """Print every entry with its hash, one JSON object a line."""
    from duckflow.cli.reports.audit import print_export  # noqa: PLC0415 - heavy, and not for --help

    print_export()


@commands.command("stats", help=text("help.audit_stats"))
def stats(*, json: JsonFlag = False) -> None:
    """Count questions, approvals, refusals and actions."""
    from duckflow.cli.reports.audit import print_stats  # noqa: PLC0415 - heavy, and not for --help

    print_stats(json=json)
