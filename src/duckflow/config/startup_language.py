"""The language setting alone, which help and errors need before other settings are loaded."""

from duckflow.config.places import config_dir
from duckflow.config.toml_file import parse, read_text
from duckflow.domain.errors import UsageError

USER_FILE = "config.toml"


def configured_language() -> str:
    """Return the language in the user's file, or "auto". Faults are reported when all settings are loaded."""
    path = config_dir() / USER_FILE
    try:
        language: object = parse(read_text(path) or "", path).get("language", "auto")
    except UsageError:
        return "auto"
    return language if isinstance(language, str) else "auto"
