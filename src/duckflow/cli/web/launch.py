"""Starts the web view: opens a socket on loopback, prints the address, and opens the browser."""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from duckflow.cli.log_file import open_log_file
from duckflow.cli.web.local_sessions import LocalSessions
from duckflow.cli.web.server import make_app
from duckflow.config.places import state_dir
from duckflow.domain.errors import UsageError
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo
from duckflow.ui.web.guard import RequestGuard

_HOST = "127.0.0.1"
_OPENERS = ("xdg-open", "wslview", "open")
_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">\n'


def launch(folder: Path, port: int, flags: dict[str, object], database: str | None, *, browser: bool) -> None:
    """Serve until Ctrl-C."""
    open_log_file()
    with _listen(port) as listening:
        sessions = LocalSessions(folder.resolve(), flags, database)
        asyncio.run(_serve(listening, folder.resolve(), sessions, browser=browser))


async def _serve(listening: socket.socket, folder: Path, sessions: LocalSessions, *, browser: bool) -> None:
    guard = RequestGuard(make_app(sessions))
    base = f"http://{_HOST}:{listening.getsockname()[1]}{guard.place}"
    config = uvicorn.Config(
        guard,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)

    def tell() -> str:
        address = f"{base}?token={guard.new_token()}"
        echo(text("web.address", address=address))
        return address

    address = tell()
    opened = _open_browser(address, folder) if browser else None
    if sys.stdin.isatty():
        echo(text("web.more"))
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _another, tell)
    serving = asyncio.ensure_future(sessions.serve_unowned())
    ending = asyncio.ensure_future(_end_streams(server, sessions))
    try:
        await server.serve(sockets=[listening])
    finally:
        serving.cancel()
        ending.cancel()
        await sessions.aclose()
        if opened is not None:
            opened.unlink(missing_ok=True)


async def _end_streams(server: uvicorn.Server, sessions: LocalSessions) -> None:
    """End the pages' streams when the server stops, because it waits for them."""
    while not server.should_exit:  # noqa: ASYNC110 - uvicorn has a flag, not an event
        await asyncio.sleep(0.1)
    sessions.closing.set()


def _another(tell: Callable[[], object]) -> None:
    if os.read(sys.stdin.fileno(), 1000):
        tell()
    else:
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port))  # from now on connections wait, and are not refused
    except OSError as exc:
        raise UsageError("web.port", port=port, reason=os.strerror(exc.errno or 0)) from exc


def _open_browser(address: str, folder: Path) -> Path | None:
    """Open the address through a private file, because every user can read the browser's command line."""
    programs = (find_program(name, folder, os.environ) for name in _OPENERS)
    program = next((one for one in programs if one), None)
    if program is None:
        return None
    page = state_dir() / f"open-{secrets.token_hex(4)}.html"
    page.touch(mode=0o600)
    page.write_text(_PAGE.format(address=address), "utf-8")
    subprocess.Popen(  # noqa: S603 - the user's own opener, found outside the workspace
        [program, page.as_uri()],
        env=program_environment(folder, os.environ),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return page
