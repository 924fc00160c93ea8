"""`duckflow prompt`: the prompt that a model would get."""

from typing import Annotated

import typer

from duckflow.cli.commands.flags import HERE, FolderFlag, JsonFlag, ModelFlag, TrustFlag, option
from duckflow.i18n.catalogue import text

commands = typer.Typer(help=text("help.prompt"), no_args_is_help=True)


@commands.callback()
def _group() -> None:
    """With one command only, typer would leave out its name."""


@commands.command("show", help=text("help.prompt_show"))
def show(
    model: ModelFlag = None,
    workspace: FolderFlag = HERE,
    *,
    last: Annotated[bool, option("continue")] = False,
    trust: TrustFlag = False,
    json: JsonFlag = False,
) -> None:
    """Print the prompt that would be sent now; the model is not asked."""
    from duckflow.cli.reports.prompt import print_prompt  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.config.loading import load  # noqa: PLC0415 - as above

    loaded = load(workspace, trusted=trust, flags={"llm.model": model})
    print_prompt(loaded, workspace, last=last, json=json)
