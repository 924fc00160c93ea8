"""Loads settings. Later sources win: defaults, user's file, project's file, environment, flags (M5).

Values that a Python program gives count like flags.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import Field

from duckflow.config.files.mcp_servers import project_servers
from duckflow.config.keys import SHORT_VARIABLES, leaves, nearest, variable_for
from duckflow.config.layers import (
    Kind,
    SettingsLayer,
    checked,
    find_fault,
    flatten,
    shown,
    validate,
)
from duckflow.config.places import config_dir
from duckflow.config.project import tighten
from duckflow.config.settings import Settings
from duckflow.config.startup_language import USER_FILE
from duckflow.config.toml_file import parse, read_text
from duckflow.config.trust import PROJECT_FILE, PROJECT_SERVERS, acting_files, trust_state
from duckflow.domain.errors import UsageError
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine, line

_PREFIX = "DUCKFLOW_"


class SettingSource(Frozen):
    """Source of a value: its kind, and the file, variable, flag or argument."""

    kind: Kind
    where: str = ""


class LoadedSettings(Frozen):
    """The settings, the source of each one by dotted key, and notices for the user."""

    settings: Settings
    sources: Mapping[str, SettingSource]
    notices: tuple[TextLine, ...] = ()
    project: Mapping[str, str] = Field(default_factory=dict[str, str])
    """The trusted files of the project that affect Duckflow: contents by path."""


class SettingRow(Frozen):
    """One setting, ready for display."""

    key: str
    value: str
    source: SettingSource


def user_file() -> Path:
    """Return the path of the user's configuration file."""
    return config_dir() / USER_FILE


def load(
    workspace: Path,
    *,
    trusted: bool = False,
    digest: str | None = None,
    flags: Mapping[str, object] | None = None,
    given: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Load the settings for a folder. `flags` are values by dotted key; None means that a flag was not given.

    `given` are the values of a Python program, by dotted key or as nested tables.
    `digest` identifies the project's files as the user trusted them. If they have changed, they are ignored.
    """
    layers = [_from_text("user", user_file(), read_text(user_file()))]
    notices: list[TextLine] = []
    project = trust_state(workspace) if trusted else None
    if project is not None and digest in (None, project.digest):
        path = workspace / PROJECT_FILE
        own = _from_text("project", path, project.files.get(PROJECT_FILE))
        layer, looser = tighten(own, _merge(layers), user_file())
        layers.append(layer)
        notices += [line("config.project_looser", **values) for values in looser]
        if content := project.files.get(PROJECT_SERVERS):
            servers, left_out = project_servers(content, workspace / PROJECT_SERVERS)
            named = _merge(layers).mcp.servers.items()
            both = {**servers, **{name: one.model_dump(mode="json") for name, one in named}}
            layers.append(SettingsLayer("project", {"mcp.servers": both}, {"mcp.servers": PROJECT_SERVERS}))
            notices += left_out
    elif names := acting_files(workspace):
        notices.append(line("config.project_not_trusted", path=str(workspace / names[0])))
        project = None
    layers.append(_from_environment(os.environ if environ is None else environ))
    layers.append(_from_flags(flags or {}))
    layers.append(_from_program(given or {}))
    files: Mapping[str, str] = project.files if project is not None else {}
    return LoadedSettings(
        settings=_merge(layers), sources=_sources(layers), notices=tuple(notices), project=files
    )


def load_as_trusted(
    workspace: Path, *, trust: bool = False, flags: Mapping[str, object] | None = None
) -> LoadedSettings:
    """Load the settings without asking. The project's settings apply if the user already trusts them."""
    known = None if trust else trust_state(workspace)
    trusted = known is None or known.status == "trusted"
    return load(workspace, trusted=trusted, digest=known.digest if known and trusted else None, flags=flags)


def rows(loaded: LoadedSettings) -> tuple[SettingRow, ...]:
    """Return every setting, its value as TOML, and its source, for `duckflow config show`."""
    values = flatten(loaded.settings.model_dump(mode="json"))
    return tuple(
        SettingRow(key=key, value=shown(_listed(value)), source=loaded.sources[key]) for key, value in values
    )


def _listed(value: object) -> object:
    """Replace a table by its names, because its values may be secret."""
    return list(cast("dict[str, object]", value)) if isinstance(value, dict) else value


def _from_text(kind: Kind, path: Path, text: str | None) -> SettingsLayer:
    values = dict(flatten(parse(text, path))) if text else {}
    return checked(SettingsLayer(kind, values, dict.fromkeys(values, str(path)), text or ""))


def _from_environment(environ: Mapping[str, str]) -> SettingsLayer:
    # If both a short and a long name are set, the long one wins. Variables that are not settings, such as
    # DUCKFLOW_STATE_DIR, have no double underscore.
    origins = {key: variable for variable, key in SHORT_VARIABLES.items() if environ.get(variable)}
    for variable in sorted(environ):
        if variable.startswith(_PREFIX) and "__" in variable and environ[variable]:
            key = variable.removeprefix(_PREFIX).replace("__", ".").lower()
            if key not in leaves():
                raise _unknown(variable, key)
            origins[key] = variable
    values = {key: _value(key, environ[variable]) for key, variable in origins.items()}
    return checked(SettingsLayer("environment", values, origins))


def _value(key: str, raw: str) -> object:
    """Parse a text as TOML if the setting accepts the result (20 is a number), otherwise keep it as text."""
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    if list(parsed) != ["value"] or (find_fault(key, parsed["value"]) and not find_fault(key, raw)):
        return raw
    return parsed["value"]


def _unknown(variable: str, key: str) -> UsageError:
    guess = nearest(key)
    if guess is not None and guess in leaves():
        return UsageError("config.unknown_variable_near", variable=variable, nearest=variable_for(guess))
    return UsageError("config.unknown_variable", variable=variable)


def _from_flags(flags: Mapping[str, object]) -> SettingsLayer:
    values = {key: value for key, value in flags.items() if value is not None}
    names = {key: "--" + key.rpartition(".")[2].replace("_", "-") for key in values}
    return checked(SettingsLayer("flag", values, names))


def _from_program(given: Mapping[str, object]) -> SettingsLayer:
    values = {key: value for key, value in flatten(given) if value is not None}
    return checked(SettingsLayer("program", values, dict.fromkeys(values, "settings")))


def _merge(layers: Sequence[SettingsLayer]) -> Settings:
    return validate({key: value for layer in layers for key, value in layer.values.items()})


def _sources(layers: Sequence[SettingsLayer]) -> Mapping[str, SettingSource]:
    sources = dict.fromkeys(leaves(), SettingSource(kind="default"))
    for layer in layers:
        sources |= {key: SettingSource(kind=layer.kind, where=layer.origins[key]) for key in layer.values}
    return sources
