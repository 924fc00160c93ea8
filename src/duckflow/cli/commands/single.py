"""Commands without subcommands: run, try, review, acp, doctor, stats, web."""

from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from duckflow.cli.commands import flags
from duckflow.cli.plain_flags import RunFlags, settings_flags
from duckflow.domain.errors import UsageError
from duckflow.ui.output.escaping import echo


def run(
    task: Annotated[str | None, flags.argument("TASK", "task")] = None,
    model: flags.ModelFlag = None,
    mode: flags.ModeFlag = None,
    workspace: flags.OptionalFolderFlag = None,
    max_loops: flags.LoopsFlag = None,
    max_cost: flags.CostFlag = None,
    verify: flags.VerifyFlag = None,
    resume: Annotated[str | None, flags.option("resume", metavar="ID")] = None,
    answer: Annotated[str | None, flags.option("answer", metavar="TEXT")] = None,
    summary: Annotated[Path | None, flags.option("summary", metavar="FILE")] = None,
    *,
    json: flags.JsonFlag = False,
    trust: flags.TrustFlag = False,
    steer: Annotated[bool, flags.option("steer")] = False,
) -> None:
    """Do one task without a terminal; the exit code says how it ended (M3)."""
    from duckflow.cli.reports.task import run_with  # noqa: PLC0415 - not for --help

    limits = max_loops, max_cost
    switches = {"json": json, "trust": trust, "steer": steer}
    told = RunFlags(
        task, model, mode, workspace, *limits, verify, resume, answer, **switches, summary=summary
    )
    raise typer.Exit(run_with(told))


def try_(
    command: Annotated[list[str] | None, flags.argument("COMMAND", "command")] = None,
    workspace: flags.FolderFlag = flags.HERE,
    host: Annotated[list[str] | None, flags.option("host", metavar="HOST")] = None,
    apply: Annotated[str | None, flags.option("apply", metavar="ID")] = None,
    *,
    network: Annotated[bool, flags.option("network")] = False,
    yes: Annotated[bool, flags.option("yes", short="-y")] = False,
    json: flags.JsonFlag = False,
) -> None:
    """Run a command on a copy of the folder, and apply what it changed if the user wants (O7)."""
    if not any(word.strip() for word in command or ()) and apply is None:
        raise UsageError("trial.no_command")
    from duckflow.cli.reports.trial import TrialOptions, apply_later, try_with  # noqa: PLC0415 - not for --help

    if not command:
        raise typer.Exit(apply_later(apply or ""))
    options = TrialOptions(workspace, host or (), network=network, yes=yes, as_json=json)
    raise typer.Exit(try_with(command, options))


def review(
    changes: Annotated[str, flags.argument("RANGE", "review_range")] = "",
    model: flags.ModelFlag = None,
    workspace: flags.FolderFlag = flags.HERE,
    max_loops: flags.LoopsFlag = None,
    max_cost: flags.CostFlag = None,
    summary: Annotated[Path | None, flags.option("summary", "review_summary", metavar="FILE")] = None,
    *,
    staged: Annotated[bool, flags.option("staged")] = False,
    details: Annotated[bool, flags.option("details", "review_details")] = False,
    json: Annotated[bool, flags.option("json", "review_json")] = False,
    trust: flags.TrustFlag = False,
) -> None:
    """Review changes; exit code 1 if a finding is proven (O4)."""
    from duckflow.cli.reports.review import ReviewFlags, review_with  # noqa: PLC0415 - not for --help

    limits = max_loops, max_cost
    told = ReviewFlags(changes, workspace, model, *limits, summary, staged, details, json, trust)
    raise typer.Exit(review_with(told))


def acp(
    model: flags.ModelFlag = None, mode: flags.ModeFlag = None, *, trust: flags.TrustFlag = False
) -> None:
    """Serve an editor on standard input and output until it closes the connection (M6)."""
    if find_spec("acp") is None:
        raise UsageError("editors.not_installed")
    import asyncio  # noqa: PLC0415 - heavy, and not for --help

    from duckflow.cli.editors.agent import serve  # noqa: PLC0415 - heavy, and not for --help

    asyncio.run(serve(settings_flags(model, mode), trust=trust))


def doctor(
    model: flags.ModelFlag = None,
    workspace: flags.FolderFlag = flags.HERE,
    *,
    trust: flags.TrustFlag = False,
    json: flags.JsonFlag = False,
) -> None:
    """Print one line for each thing that was checked; exit code 1 if something is broken."""
    from pydantic_core import to_json  # noqa: PLC0415 - heavy, and not for --help

    from duckflow.cli.reports.diagnosis import examine, show  # noqa: PLC0415 - heavy, and not for --help

    broken = False
    for finding in examine(workspace, model, trusted=trust):
        echo(to_json(finding._asdict()).decode() if json else show(finding))
        broken = broken or finding.state == "broken"
    raise typer.Exit(int(broken))


def stats(*, json: flags.JsonFlag = False) -> None:
    """Print the outcomes of requests beside the targets (J7)."""
    from duckflow.app.places import open_log  # noqa: PLC0415 - heavy, and not for --help
    from duckflow.domain.work.outcomes import TARGETS  # noqa: PLC0415 - as above
    from duckflow.store.outcome_stats import request_stats  # noqa: PLC0415 - as above
    from duckflow.ui.views.tables import stats_text  # noqa: PLC0415 - as above

    with closing(open_log()) as log:
        found = request_stats(log.database)
    if not json:
        echo(stats_text(found))
        return
    for one in (*found, TARGETS):
        echo(one.model_dump_json())


def web(
    port: Annotated[int, flags.option("port", min=0, max=65_535)] = 0,
    model: flags.ModelFlag = None,
    mode: flags.ModeFlag = None,
    workspace: flags.FolderFlag = flags.HERE,
    database: flags.DatabaseFlag = None,
    *,
    no_browser: Annotated[bool, flags.option("no-browser")] = False,
) -> None:
    """Serve the page with this machine's sessions until Ctrl-C (M7)."""
    try:
        from duckflow.cli.web.launch import launch  # noqa: PLC0415 - heavy, and an extra
    except ModuleNotFoundError as exc:
        if (exc.name or "").split(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UsageError("web.not_installed", package=exc.name) from exc
    launch(workspace, port, settings_flags(model, mode), database, browser=not no_browser)
