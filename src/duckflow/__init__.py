"""Duckflow, a coding companion for the terminal, and `Session` for programs of your own."""

from typing import TYPE_CHECKING

from duckflow.config.version import __version__

if TYPE_CHECKING:
    from duckflow.api import OpenSession as Session

__all__ = ["Session", "__version__"]


def __getattr__(name: str) -> object:
    """The engine is imported when it is asked for: `duckflow --help` needs none of it."""
    if name == "Session":
        from duckflow.api import OpenSession  # noqa: PLC0415 - see above

        return OpenSession
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
