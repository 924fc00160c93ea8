"""Where things live on the user's machine: state, configuration, cache. Never in the workspace."""

import os
import stat
from functools import cache
from pathlib import Path

from duckflow.domain.errors import UserError

_PRIVATE = 0o700


def state_dir() -> Path:
    """Where sessions are kept; created, and readable by the user alone."""
    return _created("DUCKFLOW_STATE_DIR", "state")


def config_dir() -> Path:
    """Where the user's configuration is looked for; not created."""
    return _given("DUCKFLOW_CONFIG_DIR") or _usual("config")


def cache_dir() -> Path:
    """Where model weights, and whatever else can be had again, are kept; created."""
    return _created("DUCKFLOW_CACHE_DIR", "cache")


def checkouts_dir() -> Path:
    """Where the fleet's runs have their copies of repositories; created. Tools may work in it."""
    return _created("DUCKFLOW_FLEET_DIR", "data", "fleet")


def _created(variable: str, kind: str, below: str = "") -> Path:
    """The folder a variable names, else ours in the usual place."""
    given = _given(variable)
    return _create(given) if given else _create(_usual(kind) / below, ours=True)


def _usual(kind: str) -> Path:
    """The system's usual place for files of this kind."""
    return _found(kind, os.environ.get("HOME"), os.environ.get(f"XDG_{kind.upper()}_HOME"))


@cache
def _found(kind: str, _home: str | None, _wish: str | None) -> Path:
    """Asked for many times a loop, so it is looked up again only if the environment has changed."""
    import platformdirs  # noqa: PLC0415 - costs more than all the rest here

    return getattr(platformdirs, f"user_{kind}_path")("duckflow", appauthor=False)


def _given(variable: str) -> Path | None:
    value = os.environ.get(variable)
    # Path's own expanduser can raise, and its resolve would follow links.
    return Path(os.path.abspath(os.path.expanduser(value))) if value else None  # noqa: PTH100, PTH111


def _create(place: Path, *, ours: bool = False) -> Path:
    """Make the folder. One that was there is closed to others only if it is `ours`: else they may read it.

    A link, or a folder that somebody else owns or may write to, would let them plant what we trust.
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
