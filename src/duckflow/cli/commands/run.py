"""`duckflow run`: one task without a terminal (SPEC M3)."""

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
    settings_flags,
)
from duckflow.domain.errors import UsageError
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
    if not resume and not (task or "").strip():
        raise UsageError("run.no_task")
    if answer is not None and not resume:
        raise UsageError("run.answer_without_resume")
    from duckflow.api import find_session  # noqa: PLC0415 - not for --help
    from duckflow.cli.reports.task import RunTask, run_task  # noqa: PLC0415 - as above
    from duckflow.config.loading import load  # noqa: PLC0415 - as above

    earlier = find_session(resume) if resume else None
    folder = workspace or Path(earlier.workspace if earlier else "")
    loaded = load(folder, trusted=trust, flags=settings_flags(model, mode, max_loops, max_cost))
    again = {"--model": model, "--max-loops": max_loops, "--max-cost": max_cost}
    flags = [word for flag, value in again.items() if value is not None for word in (flag, str(value))]
    given = RunTask(
        text=(task or "").strip(),
        folder=folder,
        session=earlier.id if earlier else None,
        answer=answer,
        verify=verify,
        json=json,
        mode=mode,
        flags=(*flags, *(["--trust"] if trust else [])),
    )
    raise typer.Exit(run_task(given, loaded))
