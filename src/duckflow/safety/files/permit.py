"""A permit: what the user said yes to, held while it is done, so that nothing else can be changed (SAFETY 7).

It travels with the running action into the threads that do its work; the file layer looks at it at the moment
of the change.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from duckflow.safety.files.atomic import ANY, ChangedMeanwhile


class Permit(NamedTuple):
    """Files by their path in the workspace, with the SHA-256 each had when shown (None: there was none)."""

    before: Mapping[str, str | None]
    outside: str | None = None
    """The real path of a file outside that may be read."""


_held: ContextVar[Permit | None] = ContextVar("permit", default=None)


@contextmanager
def holding(permit: Permit | None) -> Generator[None]:
    """Inside the block, here and in threads begun here, only what was approved can be changed."""
    token = _held.set(permit)
    try:
        yield
    finally:
        _held.reset(token)


def approved_content(path: str, expected: str | None) -> str | None:
    """The digest a file must have to be changed: the one that was approved, where something was."""
    permit = _held.get()
    if permit is None:
        return expected
    if path not in permit.before:
        raise ChangedMeanwhile(f"{path}: is not what the user was asked about; nothing was changed.")
    approved = permit.before[path]
    if expected not in (ANY, approved):
        raise ChangedMeanwhile(f"{path}: is not as it was when the user was asked; nothing was changed.")
    return approved


def permitted_outside() -> str | None:
    """The file outside the workspace that may be read now, if any."""
    permit = _held.get()
    return permit.outside if permit else None
