"""Where things live on the user's machine: state, configuration, cache. Never in the workspace."""

import os
import stat
from pathlib import Path

from duckflow.domain.errors import UserError

_PRIVATE = 0o700


def state_dir() -> Path:
    """Where sessions are kept; created, and readable by the user alone."""
    given = _given("DUCKFLOW_STATE_DIR")
    if given:
        return _create(given)
    from platformdirs import user_state_path  # noqa: PLC0415 - costs more than all the rest here

    return _create(user_state_path("duckflow", appauthor=False), ours=True)


def config_dir() -> Path:
    """Where the user's configuration is looked for; not created."""
    given = _given("DUCKFLOW_CONFIG_DIR")
    if given:
        return given
    from platformdirs import user_config_path  # noqa: PLC0415 - as above

    return user_config_path("duckflow", appauthor=False)


def cache_dir() -> Path:
    """Where model weights, and whatever else can be had again, are kept; created."""
    given = _given("DUCKFLOW_CACHE_DIR")
    if given:
        return _create(given)
    from platformdirs import user_cache_path  # noqa: PLC0415 - as above

    return _create(user_cache_path("duckflow", appauthor=False), ours=True)


def checkouts_dir() -> Path:
    """Where the fleet's runs have their copies of repositories; created. Tools may work in it."""
    given = _given("DUCKFLOW_FLEET_DIR")
    if given:
        return _create(given)
    from platformdirs import user_data_path  # noqa: PLC0415 - as above

    return _create(user_data_path("duckflow", appauthor=False) / "fleet", ours=True)


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
