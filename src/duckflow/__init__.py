"""Duckflow, a coding agent for the terminal, and `Session` for Python programs."""

from typing import TYPE_CHECKING

from duckflow.config.version import __version__

if TYPE_CHECKING:
    from duckflow.api import OpenSession as Session

__all__ = ["Session", "__version__"]


def __getattr__(name: str) -> object:
    """Import the engine on first use: `duckflow --help` does not need it."""
    if name == "Session":
        from duckflow.api import OpenSession  # noqa: PLC0415 - see above

        return OpenSession
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
