"""What a project's own file may do: tighten, never loosen, never say which model is asked (SPEC M5)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from duckflow.config.layers import Layer, shown
from duckflow.config.settings import Settings
from duckflow.domain.errors import UsageError
from duckflow.domain.modes import MODES

Direction = Literal["free", "stricter", "lower"]

PROJECT_MAY_SET: Mapping[str, Direction] = {
    "mode": "stricter",
    "duck_pacemaker.dynamic_limits.max_loops": "lower",
    "rules.files": "free",
    "gate.many_files": "lower",
    "gate.large_bytes": "lower",
    "memory.enabled": "lower",
    "shell.network": "lower",
    "shell.timeout_s": "lower",
    "shell.max_timeout_s": "lower",
    "shell.max_output_bytes": "lower",
    "shell.max_processes": "lower",
    "shell.memory_mb": "lower",
    "shell.file_mb": "lower",
    "shell.disk_mb": "lower",
}
"""All that a project may set, and in which direction. Everything else is the user's alone."""


def tighten(layer: Layer, user: Settings, user_file: Path) -> tuple[Layer, list[dict[str, str]]]:
    """The layer without what would loosen the user's settings, and what was left out."""
    for key in layer.values:
        if key not in PROJECT_MAY_SET:
            raise UsageError(
                "config.not_for_project", where=layer.place(key), setting=key, user_file=user_file
            )
    looser = set(_looser(layer, user))
    kept = {key: value for key, value in layer.values.items() if key not in looser}
    left_out = [
        {"where": layer.place(key), "setting": key, "value": shown(layer.values[key])}
        for key in sorted(looser)
    ]
    return replace(layer, values=kept), left_out


def _looser(layer: Layer, user: Settings) -> Iterator[str]:
    for key, value in layer.values.items():
        now: object = user
        for part in key.split("."):
            now = getattr(now, part)
        if _loosens(PROJECT_MAY_SET[key], now, value):
            yield key


def _loosens(direction: Direction, now: object, wanted: object) -> bool:
    match direction, now, wanted:
        case "stricter", str(), str():
            return list[str](MODES).index(wanted) > list[str](MODES).index(now)
        case "lower", int(), int():
            return wanted > now
        case _:
            return direction != "free"
