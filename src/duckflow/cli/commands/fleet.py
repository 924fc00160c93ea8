"""`duckflow fleet`: many requests in many repositories, with any number of workers (M8)."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duckflow.cli.commands import flags
from duckflow.domain.errors import UsageError, UserError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo

if TYPE_CHECKING:
    from duckflow.fleet.fleet import Fleet

commands = typer.Typer(help=text("help.fleet"), no_args_is_help=True)
RunArgument = Annotated[str, flags.argument("ID", "run")]


def _fleet(database: str | None) -> "AbstractContextManager[Fleet]":
    try:
        from duckflow.fleet.fleet import open_fleet  # noqa: PLC0415 - heavy, and only here
    except ImportError as exc:
        raise UserError("fleet.extra_missing") from exc
    return open_fleet(database)


@commands.command("submit", help=text("help.fleet_submit"))
def submit(
    folder: Annotated[Path | None, flags.argument("FOLDER", "fleet_folder")] = None,
    request: Annotated[str | None, flags.argument("REQUEST", "task")] = None,
    count: Annotated[int, flags.option("n", "fleet_n", min=1, max=1000)] = 1,
    file: Annotated[Path | None, flags.option("file", "fleet_file", metavar="FILE")] = None,
    model: flags.ModelFlag = None,
    mode: flags.ModeFlag = None,
    max_loops: flags.LoopsFlag = None,
    max_cost: flags.CostFlag = None,
    verify: flags.VerifyFlag = None,
    minutes: Annotated[float | None, flags.option("minutes", min=0.01)] = None,
    database: flags.DatabaseFlag = None,
    *,
    trust: flags.TrustFlag = False,
) -> None:
    """Queue a request, or a file of requests; each line ends with the id of a run."""
    if (file is None) == (folder is None or request is None):
        raise UsageError("fleet.submit_what")
    with _fleet(database) as fleet:
        from duckflow.cli.reports.fleet import read_requests  # noqa: PLC0415 - heavy, and not for --help
        from duckflow.fleet.runs import RunOptions  # noqa: PLC0415 - as above

        limits = {"max_loops": max_loops, "max_cost": max_cost, "minutes": minutes}
        chosen = {"mode": mode, "model": model, "verify": verify, "trust": trust, **limits}
        common = RunOptions.model_validate({name: one for name, one in chosen.items() if one is not None})
        wanted = read_requests(file, common) if file else [(folder or Path(), request or "", common)]
        for one, said, options in wanted:
            for run in fleet.submit(one, said, options, count):
                echo(text("fleet.queued", run=run))


@commands.command("worker", help=text("help.fleet_worker"))
def worker(
    database: flags.DatabaseFlag = None,
    lease: Annotated[float | None, flags.option("lease", min=0.5)] = None,
    *,
    until_idle: Annotated[bool, flags.option("until-idle")] = False,
) -> None:
    """Work on the queued runs."""
    try:
        from duckflow.fleet.database import address  # noqa: PLC0415 - heavy, and only here
        from duckflow.fleet.worker import LEASE_S, run_worker  # noqa: PLC0415 - as above
    except ImportError as exc:
        raise UserError("fleet.extra_missing") from exc

    run_worker(address(database), until_idle=until_idle, lease_s=lease or LEASE_S)


@commands.command("list", help=text("help.fleet_list"))
def list_all(database: flags.DatabaseFlag = None, *, json: flags.JsonFlag = False) -> None:
    """List all runs, the newest first."""
    with _fleet(database) as fleet:
        found = fleet.runs.listed()
    for run in found:
        state, first = text(f"fleet.state.{run.state}"), run.request.splitlines()[0]
        echo(run.model_dump_json() if json else f"{run.id}  {state}  {run.repository}  {first}")
    if not found and not json:
        echo(text("fleet.none"))


@commands.command("show", help=text("help.fleet_show"))
def show(run: RunArgument, database: flags.DatabaseFlag = None, *, json: flags.JsonFlag = False) -> None:
    """Print one run: its events, its state, its question and its result."""
    with _fleet(database) as fleet:
        from duckflow.cli.reports.fleet import print_run, run_json  # noqa: PLC0415 - heavy, not for --help

        found = fleet.runs.find(run)
        if json:
            echo(run_json(fleet, found))
        else:
            print_run(fleet, found)


@commands.command("answer", help=text("help.fleet_answer"))
def answer(
    run: RunArgument,
    said: Annotated[str, typer.Argument(metavar="TEXT", help=text("help.option.answer"))],
    question: Annotated[str | None, flags.option("question", metavar="HASH")] = None,
    database: flags.DatabaseFlag = None,
) -> None:
    """Answer the question of a run."""
    with _fleet(database) as fleet:
        echo(text("fleet.answered", run=fleet.answer(run, said, question).id))


@commands.command("cancel", help=text("help.fleet_cancel"))
def cancel(run: RunArgument, database: flags.DatabaseFlag = None) -> None:
    """Stop a run."""
    with _fleet(database) as fleet:
        echo(text("fleet.cancelled", run=fleet.cancel(run).id))


@commands.command("retry", help=text("help.fleet_retry"))
def retry(run: RunArgument, database: flags.DatabaseFlag = None) -> None:
    """Continue a run that failed or was cancelled."""
    with _fleet(database) as fleet:
        echo(text("fleet.queued", run=fleet.retry(run).id))


@commands.command("clean", help=text("help.fleet_clean"))
def clean(
    days: Annotated[float, flags.option("days", "clean_days", min=0.0)] = 30.0,
    database: flags.DatabaseFlag = None,
) -> None:
    """Delete runs that ended long ago."""
    with _fleet(database) as fleet:
        echo(text("fleet.cleaned", count=len(fleet.clean(days))))
