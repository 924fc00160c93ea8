"""Flags that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from duckflow.domain.modes import Mode
from duckflow.i18n.catalogue import text


def option(flag: str, key: str = "", short: str = "", **settings: Any) -> Any:  # noqa: ANN401 - as typer has it
    """Return an option with the help text `help.option.KEY`; without `key`, the flag's name is the key."""
    return typer.Option(
        f"--{flag}",
        *([short] if short else []),
        help=text(f"help.option.{key or flag.replace('-', '_')}"),
        **settings,
    )


def argument(metavar: str, key: str) -> Any:  # noqa: ANN401 - as typer has it
    """Return an argument with the help text `help.argument.KEY`."""
    return typer.Argument(metavar=metavar, help=text(f"help.argument.{key}"))


ModelFlag = Annotated[str | None, option("model", metavar="NAME")]
ModeFlag = Annotated[Mode | None, option("mode")]
OptionalFolderFlag = Annotated[Path | None, option("workspace", metavar="DIR")]
FolderFlag = Annotated[Path, option("workspace", metavar="DIR")]
TrustFlag = Annotated[bool, option("trust")]
LoopsFlag = Annotated[int | None, option("max-loops", min=1)]
CostFlag = Annotated[float | None, option("max-cost", min=0.0, metavar="USD")]
VerifyFlag = Annotated[str | None, option("verify", metavar="CMD")]
JsonFlag = Annotated[bool, option("json")]
DatabaseFlag = Annotated[str | None, option("database", "fleet_database", metavar="URL")]
HERE = Path()
