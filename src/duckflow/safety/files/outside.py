"""Read one file outside the workspace, after the user approved exactly that file (G3)."""

import errno
import os
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.safety.descriptors import closing_fd
from duckflow.safety.files import atomic
from duckflow.safety.files.confined_open import FOLDER, open_walking
from duckflow.safety.files.encoding import decode
from duckflow.safety.files.errors import as_tool_errors
from duckflow.safety.paths import check_characters
from duckflow.safety.policy.protected import keeps_secrets, within

READ_CAP = 1_000_000
"""Largest file, in bytes, that is read from outside the workspace."""

MACHINE = ("/proc", "/sys", "/dev", "/run")
"""Folders without regular files, some of which reveal other processes."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class OutsideFile(NamedTuple):
    """Real path of a file outside the workspace, and whether it is closed to tools."""

    real: str
    closed: bool


def find_outside(text: str, root: Path, denied: tuple[str, ...]) -> OutsideFile | None:
    """Return the real path if it lies outside the root, None if it is inside."""
    check_characters(text)
    home = os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser can raise
    real = os.path.realpath(root / home)
    if within(real, str(root)):
        return None
    closed = any(within(real, folder) for folder in (*denied, *MACHINE)) or keeps_secrets(real)
    return OutsideFile(real, closed)


def read_outside(real: str) -> str:
    """Return the text of a regular file by its real path, without following any link."""
    return decode(real, read_outside_bytes(real, READ_CAP)).text


def read_outside_bytes(real: str, cap: int) -> bytes:
    """Return the content of a regular file of at most `cap` bytes, without following any link."""
    with (
        as_tool_errors(real),
        closing_fd(os.open("/", FOLDER)) as top,
        closing_fd(_open(top, real)) as opened,
    ):
        atomic.check_regular(os.fstat(opened), real, cap)
        return atomic.read_all(opened, real, cap)


def _open(top: int, real: str) -> int:
    try:
        return open_walking(top, real.strip("/"), _READ)
    except OSError as exc:
        if exc.errno != errno.ELOOP:
            raise
        raise ToolError(f"{real}: leads elsewhere now; name the file again.") from exc
