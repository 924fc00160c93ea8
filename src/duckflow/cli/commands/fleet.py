"""`duckflow fleet`: many requests in many repositories, with any number of workers (M8)."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duckflow.cli.commands import flags
from duckflow.domain.errors import UsageError, UserError
from duckflow.fleet import RunState
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
    priority: Annotated[int | None, flags.option("priority", min=-1000, max=1000)] = None,
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

        limits = {"max_loops": max_loops, "max_cost": max_cost, "minutes": minutes, "priority": priority}
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
    parallel: Annotated[int | None, flags.option("parallel", min=1, max=100)] = None,
    *,
    until_idle: Annotated[bool, flags.option("until-idle")] = False,
) -> None:
    """Work on the queued runs."""
    try:
        from duckflow.fleet.database import address  # noqa: PLC0415 - heavy, and only here
        from duckflow.fleet.worker import LEASE_S, PARALLEL, run_worker  # noqa: PLC0415 - as above
    except ImportError as exc:
        raise UserError("fleet.extra_missing") from exc
    from duckflow.config.loading import load  # noqa: PLC0415 - not for --help

    run_worker(
        address(database),
        until_idle=until_idle,
        lease_s=lease or LEASE_S,
        parallel=parallel or PARALLEL,
        notices=load(Path.home()).settings.fleet,
    )


@commands.command("list", help=text("help.fleet_list"))
def list_all(
    words: Annotated[str, flags.argument("WORDS", "fleet_words")] = "",
    state: Annotated[RunState | None, flags.option("state", "fleet_state")] = None,
    repository: Annotated[str, flags.option("repository", "fleet_repository", metavar="NAME")] = "",
    database: flags.DatabaseFlag = None,
    *,
    json: flags.JsonFlag = False,
) -> None:
    """List the runs that fit, the newest first."""
    import time  # noqa: PLC0415 - not for --help

    with _fleet(database) as fleet:
        from duckflow.cli.reports.fleet import run_lines  # noqa: PLC0415 - heavy, and not for --help
        from duckflow.fleet.runs import RunFilter  # noqa: PLC0415 - as above

        here = str(Path(repository).resolve()) if repository and Path(repository).is_dir() else repository
        found = fleet.runs.listed(wanted=RunFilter(state=state, repository=here, words=words))
        any_runs = found or fleet.runs.counts()
    for line in [run.model_dump_json() for run in found] if json else run_lines(found, time.time()):
        echo(line)
    if not found and not json:
        echo(text("fleet.none_fits" if any_runs else "fleet.none"))


@commands.command("logs", help=text("help.fleet_logs"))
def logs(
    run: Annotated[str | None, flags.argument("ID", "run")] = None, database: flags.DatabaseFlag = None
) -> None:
    """Print what workers did with a run, or with all of them."""
    with _fleet(database) as fleet:
        from duckflow.cli.reports.fleet import print_log  # noqa: PLC0415 - heavy, not for --help

        print_log(fleet, run)


@commands.command("follow", help=text("help.fleet_follow"))
def follow(run: RunArgument, database: flags.DatabaseFlag = None) -> None:
    """Show a run live until it ends."""
    with _fleet(database) as fleet:
        from duckflow.cli.reports.fleet import follow_run  # noqa: PLC0415 - heavy, not for --help

        code = follow_run(fleet, run)
    raise typer.Exit(code)


@commands.command("limits", help=text("help.fleet_limits"))
def limits(
    total: Annotated[int | None, flags.option("total", "fleet_total", min=0)] = None,
    per_repository: Annotated[int | None, flags.option("per-repository", "fleet_each", min=0)] = None,
    cost: Annotated[float | None, flags.option("cost", "fleet_cost", min=0.0, metavar="USD")] = None,
    database: flags.DatabaseFlag = None,
) -> None:
    """Show or change the limits that all workers share."""
    with _fleet(database) as fleet:
        from duckflow.cli.reports.fleet import limits_line  # noqa: PLC0415 - heavy, not for --help

        chosen = {"total": total, "per_repository": per_repository, "cost_usd": cost}
        given = {name: value for name, value in chosen.items() if value is not None}
        if given:
            fleet.runs.set_limits(fleet.runs.limits().model_copy(update=given))
        echo(limits_line(fleet.runs.limits(), fleet.runs.spent_usd()))


@commands.command("push", help=text("help.fleet_push"))
def push(
    run: RunArgument,
    remote: Annotated[str, flags.option("remote", "fleet_remote")] = "origin",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help=text("help.option.fleet_output"))
    ] = None,
    database: flags.DatabaseFlag = None,
) -> None:
    """Push a run's branch, and write the text of a draft pull request."""
    with _fleet(database) as fleet:
        from duckflow.cli.reports.pull_request import pull_request_text  # noqa: PLC0415 - heavy, as above
        from duckflow.fleet.publishing import push_branch  # noqa: PLC0415 - as above

        found = fleet.runs.find(run)
        address = push_branch(found, remote)
        said = pull_request_text(fleet, found)
    echo(text("fleet.pushed", branch=found.branch, address=address), sys.stderr)
    if output is None:
        echo(said.removesuffix("\n"))
        return
    try:
        output.write_text(said, "utf-8")
    except OSError as exc:
        raise UsageError("session.not_written", path=output, reason=exc.strerror or exc) from exc


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
