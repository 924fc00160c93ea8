"""The language setting, which help and errors need before anything else is loaded."""

from duckflow.config.places import config_dir
from duckflow.config.toml_file import parse, read_text
from duckflow.domain.errors import UsageError

USER_FILE = "config.toml"


def configured_language() -> str:
    """Return the language in the user's file, or "auto"; problems are reported when the file is loaded."""
    path = config_dir() / USER_FILE
    try:
        language: object = parse(read_text(path) or "", path).get("language", "auto")
    except UsageError:
        return "auto"
    return language if isinstance(language, str) else "auto"
