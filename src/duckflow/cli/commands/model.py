"""`duckflow model`: files of embedded models."""

import json as jsons
from pathlib import Path
from typing import Annotated

import typer

from duckflow.cli.commands.flags import JsonFlag, argument, option
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

commands = typer.Typer(help=text("help.model"), no_args_is_help=True)
NameArgument = Annotated[str | None, argument("NAME", "model_name")]


@commands.command("list", help=text("help.model_list"))
def list_all(*, json: JsonFlag = False) -> None:
    """List the models that can be embedded."""
    from duckflow.llm.weights.catalogue import known  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.llm.weights.installation import find  # noqa: PLC0415 - as above

    for model in known():
        path = find(model.name)
        if model.for_tests and path is None:
            continue
        state = text("model.installed" if path else "model.not_installed", path=path or "")
        size = round(model.size / 1e6)
        line = text("model.line", name=model.name, megabytes=size, licence=model.licence, state=state)
        shown = model.model_dump(include={"name", "title", "licence", "size", "for_tests"})
        shown["path"] = str(path) if path else None
        echo(jsons.dumps(shown, ensure_ascii=False) if json else line)


@commands.command("install", help=text("help.model_install"))
def install(
    name: NameArgument = None,
    source: Annotated[Path | None, option("from", "from_file", metavar="FILE")] = None,
    *,
    if_needed: Annotated[bool, option("if-needed")] = False,
) -> None:
    """Download a model, or take it from a file, and check it."""
    from duckflow.cli.reports.model_install import install_shown, is_needed  # noqa: PLC0415 - heavy, and not for --help

    if not if_needed or is_needed():
        install_shown(name or _configured(), source)


@commands.command("path", help=text("help.model_path"))
def path(name: NameArgument = None) -> None:
    """Print the path of a model."""
    from duckflow.domain.errors import UserError  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.llm.weights.installation import find  # noqa: PLC0415 - as above

    wanted = name or _configured()
    found = find(wanted)
    if found is None:
        raise UserError("model.missing", name=wanted)
    echo(str(found))


@commands.command("remove", help=text("help.model_remove"))
def remove(name: NameArgument = None) -> None:
    """Delete a model."""
    from duckflow.llm.weights.installation import remove as delete  # noqa: PLC0415 - heavy, and not for --help

    wanted = name or _configured()
    echo(text("model.removed" if delete(wanted) else "model.was_not_there", name=wanted))


def _configured() -> str:
    from duckflow.config.loading import load  # noqa: PLC0415 - heavy, and not for --help

    return load(Path()).settings.llm.embedded.model
