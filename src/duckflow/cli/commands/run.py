"""`duckflow run`: one task without a terminal (M3)."""

from pathlib import Path
from typing import Annotated

import typer

from duckflow.cli.flags import (
    FOLDER,
    CostFlag,
    JsonFlag,
    LoopsFlag,
    ModeFlag,
    ModelFlag,
    TrustFlag,
    VerifyFlag,
)
from duckflow.cli.plain_flags import RunFlags
from duckflow.i18n.catalogue import text

TaskArgument = Annotated[str | None, typer.Argument(metavar="TASK", help=text("help.argument.task"))]
RunFolderFlag = Annotated[Path | None, FOLDER]
ResumeFlag = Annotated[str | None, typer.Option("--resume", metavar="ID", help=text("help.option.resume"))]
AnswerFlag = Annotated[str | None, typer.Option("--answer", metavar="TEXT", help=text("help.option.answer"))]


def run(
    task: TaskArgument = None,
    model: ModelFlag = None,
    mode: ModeFlag = None,
    workspace: RunFolderFlag = None,
    max_loops: LoopsFlag = None,
    max_cost: CostFlag = None,
    verify: VerifyFlag = None,
    resume: ResumeFlag = None,
    answer: AnswerFlag = None,
    *,
    json: JsonFlag = False,
    trust: TrustFlag = False,
) -> None:
    """Do one task and end with an exit code that says how it went."""
    from duckflow.cli.reports.task import run_with  # noqa: PLC0415 - not for --help

    limits = max_loops, max_cost
    told = RunFlags(task, model, mode, workspace, *limits, verify, resume, answer, json=json, trust=trust)
    raise typer.Exit(run_with(told))
