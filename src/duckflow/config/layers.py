"""One source of settings: validated values by dotted key, and where each was written."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from duckflow.config.keys import choices, leaves, nearest, sections
from duckflow.config.settings import Settings
from duckflow.config.toml_file import line_of
from duckflow.domain.errors import UsageError
from duckflow.domain.text import cut

Kind = Literal["default", "user", "project", "environment", "flag", "program"]

_SHOWN = 60

_TYPE_KEYS: Mapping[str, str] = {
    "int_type": "config.not_whole_number",
    "float_type": "config.not_number",
    "finite_number": "config.not_number",
    "string_type": "config.not_text",
    "tuple_type": "config.not_list",
    "string_too_short": "config.empty_value",
    "string_too_long": "config.too_long",
    "outside_workspace": "config.outside_workspace",
}
"""Catalogue key of the message for each of pydantic's error types."""

_BOUNDS = {"greater_than_equal": "≥", "greater_than": ">", "less_than_equal": "≤", "less_than": "<"}


class SettingsLayer(NamedTuple):
    """Values by dotted key, and the file, variable, flag or argument from which each came."""

    kind: Kind
    values: Mapping[str, object]
    origins: Mapping[str, str]
    text: str = ""

    def place(self, key: str) -> str:
        """Return where a value was written, for the user: the origin and, for a file, the line number."""
        line = line_of(key, self.text) if self.text else None
        origin = self.origins[key]
        return f"{origin}:{line}" if line else origin


def flatten(tables: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of nested tables by dotted key."""
    for name, value in tables.items():
        key = prefix + name
        if isinstance(value, dict) and key in sections():
            yield from flatten(value, f"{key}.")  # pyright: ignore[reportUnknownArgumentType] - TOML
        else:
            yield key, value


def checked(layer: SettingsLayer) -> SettingsLayer:
    """Refuse unknown keys, and validate each value separately, so that overridden values are checked, too."""
    for key in layer.values:
        if key not in leaves():
            raise _unknown(layer, key)
    for key, value in layer.values.items():
        fault = find_fault(key, value)
        if fault is not None:
            raise _sentence(layer, key, fault)
    return layer


def _unknown(layer: SettingsLayer, key: str) -> UsageError:
    where, setting = layer.place(key), _printable(key)
    if key in sections():
        return UsageError("config.not_table", where=where, setting=key, found=shown(layer.values[key]))
    if guess := nearest(key):
        return UsageError("config.unknown_key_near", where=where, setting=setting, nearest=guess)
    return UsageError("config.unknown_key", where=where, setting=setting)


def find_fault(key: str, value: object) -> Mapping[str, Any] | None:
    """Return pydantic's error for a value, or None."""
    try:
        validate({key: value})
    except ValidationError as exc:
        return exc.errors(include_url=False)[0]
    except RecursionError:
        return {"type": "json_invalid"}
    return None


def validate(values: Mapping[str, object]) -> Settings:
    """Build settings from dotted keys, as strict JSON: "20" is not a number, but a list becomes a tuple."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".")
        table = nested
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    # No setting accepts TOML's dates and times, so they become a value that always fails validation.
    text = json.dumps(nested, default=lambda value: {"not in JSON": str(value)})
    return Settings.model_validate_json(text, strict=True)


def _sentence(layer: SettingsLayer, key: str, fault: Mapping[str, Any]) -> UsageError:
    said = {"where": layer.place(key), "setting": key, "found": shown(layer.values[key])}
    kind = fault["type"]
    if possible := choices(leaves()[key].annotation):
        return UsageError("config.not_one_of", choices=", ".join(map(shown, possible)), **said)
    if kind in _BOUNDS:
        (bound,) = fault["ctx"].values()
        return UsageError("config.out_of_range", bound=f"{_BOUNDS[kind]} {bound}", **said)
    return UsageError(_TYPE_KEYS.get(kind, "config.bad_value"), **said)


def shown(value: object) -> str:
    """Format a value as short TOML, without control characters."""
    if value is None:
        return ""
    try:
        written = json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError):  # nested too deeply, or one of TOML's dates
        written = str(value)
    return _printable(cut(written, _SHOWN))


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
