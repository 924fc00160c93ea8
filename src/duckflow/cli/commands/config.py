"""`duckflow config`: every setting with its value and its source."""

import typer

from duckflow.cli.commands.flags import HERE, FolderFlag, JsonFlag, TrustFlag
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

commands = typer.Typer(help=text("help.config"), no_args_is_help=True)


@commands.command("show", help=text("help.config_show"))
def show(workspace: FolderFlag = HERE, *, trust: TrustFlag = False, json: JsonFlag = False) -> None:
    """List the settings of this folder."""
    from duckflow.config.loading import load, rows  # noqa: PLC0415 - heavy, and not for --help

    for row in rows(load(workspace, trusted=trust)):
        source = text(f"config.source_{row.source.kind}", where=row.source.where)
        echo(row.model_dump_json() if json else f"{row.key} = {row.value}  # {source}")


@commands.command("path", help=text("help.config_path"))
def path() -> None:
    """Print the path of the user's configuration file."""
    from duckflow.config.loading import user_file  # noqa: PLC0415 - heavy, and not for --help

    echo(str(user_file()))
