"""Commands without subcommands: run, acp, doctor, stats, web."""

from contextlib import closing
from importlib.util import find_spec
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
    *,
    json: flags.JsonFlag = False,
    trust: flags.TrustFlag = False,
    steer: Annotated[bool, flags.option("steer")] = False,
) -> None:
    """Do one task without a terminal; the exit code says how it ended (M3)."""
    from duckflow.cli.reports.task import run_with  # noqa: PLC0415 - not for --help

    limits = max_loops, max_cost
    switches = {"json": json, "trust": trust, "steer": steer}
    told = RunFlags(task, model, mode, workspace, *limits, verify, resume, answer, **switches)
    raise typer.Exit(run_with(told))


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
