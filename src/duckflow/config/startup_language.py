"""The one setting that is needed before anything else is loaded: the language for help and errors."""

from duckflow.config.places import config_dir
from duckflow.config.toml_file import parse, read_text
from duckflow.domain.errors import UsageError

USER_FILE = "config.toml"


def configured_language() -> str:
    """What the user's file says, or "auto"; whatever is wrong with the file is told when it is loaded."""
    path = config_dir() / USER_FILE
    try:
        language: object = parse(read_text(path) or "", path).get("language", "auto")
    except UsageError:
        return "auto"
    return language if isinstance(language, str) else "auto"
