"""`duckflow web`: the sessions of this machine in a browser (M7)."""

from typing import Annotated

import typer

from duckflow.cli.flags import HERE, DatabaseFlag, FolderFlag, ModeFlag, ModelFlag
from duckflow.cli.plain_flags import settings_flags
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text

PortFlag = Annotated[int, typer.Option("--port", min=0, max=65_535, help=text("help.option.port"))]
BrowserFlag = Annotated[bool, typer.Option("--no-browser", help=text("help.option.no_browser"))]


def web(
    port: PortFlag = 0,
    model: ModelFlag = None,
    mode: ModeFlag = None,
    workspace: FolderFlag = HERE,
    database: DatabaseFlag = None,
    *,
    no_browser: BrowserFlag = False,
) -> None:
    """Serve the page until this is ended with Ctrl-C."""
    try:
        from duckflow.cli.web.launch import launch  # noqa: PLC0415 - heavy, and an extra
    except ModuleNotFoundError as exc:
        if (exc.name or "").split(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise UsageError("web.not_installed", package=exc.name) from exc
    launch(workspace, port, settings_flags(model, mode), database, browser=not no_browser)
