"""Folders for Duckflow's own files on this machine: state, configuration, cache. Never in the workspace."""

import os
import stat
from functools import cache
from pathlib import Path

from duckflow.domain.errors import UserError

STATE = "DUCKFLOW_STATE_DIR"
"""Variable that names the folder for sessions."""
OUTER_STATE = "DUCKFLOW_OUTER_STATE_DIR"
"""Variable that names, for an agent, the folder with the sessions of the user."""
_SERVERS = "DUCKFLOW_SERVERS_DIR"
_PRIVATE = 0o700


def state_dir() -> Path:
    """Return the folder for sessions. It is created if missing, and only the user can read it."""
    return _created(STATE, "state")


def closed_dirs() -> tuple[Path, ...]:
    """Return Duckflow's own folders, which tools and commands can't see."""
    outer = _given(OUTER_STATE)
    return (state_dir(), config_dir(), cache_dir(), *((outer,) if outer else ()))


def config_dir() -> Path:
    """Return the folder of the user's configuration. It is not created."""
    return _given("DUCKFLOW_CONFIG_DIR") or _usual("config")


def cache_dir() -> Path:
    """Return the folder for model weights and other replaceable files. It is created if missing."""
    return _created("DUCKFLOW_CACHE_DIR", "cache")


def checkouts_dir() -> Path:
    """Return the folder with the fleet's copies of repositories, where tools may work. Created if missing."""
    return _created("DUCKFLOW_FLEET_DIR", "data", "fleet")


def data_dirs() -> tuple[Path, ...]:
    """Return the folders with the fleet's copies and the homes of MCP servers. They are not created."""
    return (_usual("data"), *filter(None, (_given(_SERVERS),)))


def server_home(server: str) -> Path:
    """Return the folder that an MCP server sees as its home: its caches and data. Created if missing."""
    return _create(servers_dir() / server, ours=True)


def is_empty(folder: Path) -> bool:
    """Return whether a folder has nothing in it."""
    return not any(folder.iterdir())


def servers_dir() -> Path:
    """Return the folder with the homes of MCP servers. It is created if missing."""
    return _created(_SERVERS, "data", "mcp")


def remove_server_homes(server: str) -> None:
    """Remove the homes of all MCP servers with this name."""
    import shutil  # noqa: PLC0415 - loads many archive modules

    for home in servers_dir().glob(f"{server}-{'[0-9a-f]' * 12}"):
        shutil.rmtree(home, ignore_errors=True)


def _created(variable: str, kind: str, below: str = "") -> Path:
    given = _given(variable)
    return _create(given) if given else _create(_usual(kind) / below, ours=True)


def _usual(kind: str) -> Path:
    return _found(kind, os.environ.get("HOME"), os.environ.get(f"XDG_{kind.upper()}_HOME"))


@cache
def _found(kind: str, _home: str | None, _wish: str | None) -> Path:
    """Return the folder. Cached until HOME or the XDG variable changes, because loops ask for it often."""
    import platformdirs  # noqa: PLC0415 - costs more than all the rest here

    return getattr(platformdirs, f"user_{kind}_path")("duckflow", appauthor=False)


def _given(variable: str) -> Path | None:
    value = os.environ.get(variable)
    # Path.expanduser can raise, and Path.resolve would follow links.
    return Path(os.path.abspath(os.path.expanduser(value))) if value else None  # noqa: PTH100, PTH111


def _create(place: Path, *, ours: bool = False) -> Path:
    """Create the folder. An existing one is made private only if it is `ours`.

    Refuse a link, or a folder that others own or can write to: they could place files there that we trust.
    """
    try:
        place.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        found = place.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise UserError("places.is_link", path=place)
        if found.st_uid not in (os.getuid(), 0):
            raise UserError("places.not_yours", path=place)
        if ours and found.st_mode & 0o077:
            place.chmod(_PRIVATE)
        elif found.st_mode & 0o022:
            raise UserError("places.others_write", path=place)
    except OSError as exc:
        raise UserError("places.cannot_create", path=place, reason=exc.strerror or exc) from exc
    return place
