"""The `duckflow` command: the conversation, and all other commands.

Import it once the language is set: the help texts are in that language.
"""

import sys
from importlib import import_module
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from duckflow.cli.commands import flags, single
from duckflow.cli.exit import run_to_end
from duckflow.cli.plain_flags import ConversationOptions
from duckflow.cli.usage import report_usage, with_translated_help
from duckflow.config.version import __version__
from duckflow.i18n.catalogue import text

app = typer.Typer(
    help=text("help.app"),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (single.run, single.review, single.acp, single.doctor, single.stats, single.web):
    app.command(_command.__name__, help=text(f"help.{_command.__name__}"))(_command)
# Options behind the command to try are its own, even without `--`.
app.command("try", help=text("help.try"), context_settings={"allow_interspersed_args": False})(single.try_)

GROUPS = ("model", "config", "sessions", "audit", "prompt", "memory", "fleet", "mcp")
"""Commands with subcommands, each in a module of `cli/commands/`."""

_ONLY_LISTED = sys.argv[1:] in (["--help"], ["-h"])
"""True if the help shows only the names of the groups, which needs none of their modules."""

for _name in GROUPS:
    if _ONLY_LISTED:
        app.add_typer(typer.Typer(help=text(f"help.{_name}")), name=_name)
    else:
        app.add_typer(import_module(f"duckflow.cli.commands.{_name}").commands, name=_name)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the flag
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def conversation(
    context: typer.Context,
    model: flags.ModelFlag = None,
    mode: flags.ModeFlag = None,
    workspace: flags.FolderFlag = flags.HERE,
    *,
    trust: flags.TrustFlag = False,
    last: Annotated[bool, flags.option("continue", short="-c")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help=text("help.version"))
    ] = False,
) -> None:
    """Open the conversation, unless a command was named."""
    if context.invoked_subcommand is not None:
        return
    from duckflow.cli.chat.launch import launch  # noqa: PLC0415 - heavy, and not for --help

    launch(ConversationOptions(model=model, mode=mode, workspace=workspace, trust=trust, last=last))


@app.command("resume", help=text("help.resume"))
def resume(
    session: Annotated[str | None, flags.argument("session", "session")] = None,
    model: flags.ModelFlag = None,
    mode: flags.ModeFlag = None,
    *,
    trust: flags.TrustFlag = False,
) -> None:
    """Take up a session again."""
    from duckflow.cli.chat.launch import launch  # noqa: PLC0415 - heavy, and not for --help

    launch(ConversationOptions(model, mode, trust=trust, last=session is None, session=session))


def main() -> NoReturn:
    """Run the command that was named."""
    run_to_end(_run)


def _run() -> NoReturn:
    try:
        code = with_translated_help(lambda: app(standalone_mode=False))
    except TyperException as error:
        sys.exit(report_usage(error))
    except typer.Abort:
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
