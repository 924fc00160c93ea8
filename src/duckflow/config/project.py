"""Settings that a project's file may change: it can make rules stricter, but not choose the model (M5)."""

from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Literal, cast

from duckflow.config.layers import SettingsLayer, shown
from duckflow.config.mcp import user_variables
from duckflow.config.settings import Settings
from duckflow.domain.errors import UsageError
from duckflow.domain.modes import MODES

Direction = Literal["free", "stricter", "lower", "adds"]

PROJECT_MAY_SET: Mapping[str, Direction] = {
    "mode": "stricter",
    "duck_pacemaker.dynamic_limits.max_loops": "lower",
    "duck_pacemaker.dynamic_limits.hard_max_loops": "lower",
    "rules.files": "free",
    "gate.many_files": "lower",
    "gate.large_bytes": "lower",
    "memory.enabled": "lower",
    "shell.network": "lower",
    "shell.private_hosts": "lower",
    "shell.timeout_s": "lower",
    "shell.max_timeout_s": "lower",
    "shell.max_output_bytes": "lower",
    "shell.max_processes": "lower",
    "shell.memory_mb": "lower",
    "shell.file_mb": "lower",
    "shell.disk_mb": "lower",
    "mcp.servers": "adds",
}
"""Settings that a project may change, and in which direction. Only the user can change all others."""


def tighten(
    layer: SettingsLayer, user: Settings, user_file: Path
) -> tuple[SettingsLayer, list[dict[str, str]]]:
    """Return the layer without values that loosen the user's settings, and the left-out values."""
    for key in layer.values:
        if key not in PROJECT_MAY_SET:
            raise UsageError(
                "config.not_for_project", where=layer.place(key), setting=key, user_file=user_file
            )
    kept: dict[str, object] = {}
    left_out: list[dict[str, str]] = []
    for key, value in sorted(layer.values.items()):
        if _loosens(PROJECT_MAY_SET[key], attrgetter(key)(user), value):
            left_out.append({"where": layer.place(key), "setting": key, "value": shown(value)})
        else:
            kept[key] = value
    if "mcp.servers" in kept:
        kept["mcp.servers"] = {
            **cast("dict[str, object]", kept["mcp.servers"]),
            **{name: one.model_dump(mode="json") for name, one in user.mcp.servers.items()},
        }
    return layer._replace(values=kept), left_out


def _loosens(direction: Direction, now: object, wanted: object) -> bool:
    match direction, now, wanted:
        case "stricter", str(), str():
            return list[str](MODES).index(wanted) > list[str](MODES).index(now)
        case "lower", int(), int():
            return wanted > now
        case "adds", _, dict():
            return any(_loose_server(one) for one in cast("dict[str, dict[str, object]]", wanted).values())
        case _:
            return direction != "free"


def _loose_server(server: Mapping[str, object]) -> bool:
    """Return whether a project's server would leave the sandbox, write files, or use data of the user."""
    free = ("command", "url", "enabled", "network", "start_timeout_s", "timeout_s")
    strict = (("sandbox", True), ("workspace", "read"), ("workspace", "none"))
    loose = any(key not in free and (key, value) not in strict for key, value in server.items())
    return loose or bool(user_variables(str(server)))
