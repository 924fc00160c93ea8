"""Settings from environment variables: DUCKFLOW_MODE, DUCKFLOW_LLM__FAST and so on."""

import tomllib
from collections.abc import Iterator, Mapping

from duckflow.config.keys import SHORT_VARIABLES, leaves, nearest, variable_for
from duckflow.config.layers import SettingsLayer, check, find_fault
from duckflow.domain.errors import UsageError

_PREFIX = "DUCKFLOW_"


def from_environment(environ: Mapping[str, str]) -> SettingsLayer:
    """Return the layer from environment variables. An empty variable counts as not set."""
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for variable, key in _settings_in(environ):
        if key not in leaves():
            raise _unknown(variable, key)
        values[key] = _value(key, environ[variable])
        origins[key] = variable
    layer = SettingsLayer("environment", values, origins)
    check(layer)
    return layer


def _settings_in(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield variables and their keys, short names first, so that the long name wins if both are set.

    Other names without a double underscore, such as DUCKFLOW_STATE_DIR, are not settings.
    """
    for variable, key in SHORT_VARIABLES.items():
        if environ.get(variable):
            yield variable, key
    for variable in sorted(environ):
        if variable.startswith(_PREFIX) and "__" in variable and environ[variable]:
            yield variable, variable.removeprefix(_PREFIX).replace("__", ".").lower()


def _value(key: str, raw: str) -> object:
    """Parse the text as TOML if the setting accepts that, otherwise keep it: 20 is a number, qwen a name."""
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    if list(parsed) != ["value"]:
        return raw
    value = parsed["value"]
    if find_fault(key, value) and not find_fault(key, raw):
        return raw
    return value


def _unknown(variable: str, key: str) -> UsageError:
    guess = nearest(key)
    if guess is not None and guess in leaves():
        return UsageError("config.unknown_variable_near", variable=variable, nearest=variable_for(guess))
    return UsageError("config.unknown_variable", variable=variable)
