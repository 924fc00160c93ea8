"""The flags that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from duckflow.domain.modes import Mode
from duckflow.i18n.catalogue import text

ModelFlag = Annotated[str | None, typer.Option("--model", metavar="NAME", help=text("help.option.model"))]
ModeFlag = Annotated[Mode | None, typer.Option("--mode", help=text("help.option.mode"))]
FOLDER = typer.Option("--workspace", metavar="DIR", help=text("help.option.workspace"))
FolderFlag = Annotated[Path, FOLDER]
TrustFlag = Annotated[bool, typer.Option("--trust", help=text("help.option.trust"))]
LoopsFlag = Annotated[int | None, typer.Option("--max-loops", min=1, help=text("help.option.max_loops"))]
CostFlag = Annotated[
    float | None, typer.Option("--max-cost", min=0.0, metavar="USD", help=text("help.option.max_cost"))
]
VerifyFlag = Annotated[str | None, typer.Option("--verify", metavar="CMD", help=text("help.option.verify"))]
JsonFlag = Annotated[bool, typer.Option("--json", help=text("help.option.json"))]
DatabaseFlag = Annotated[
    str | None, typer.Option("--database", metavar="URL", help=text("help.option.fleet_database"))
]
HERE = Path()
