"""Masks for secrets that git tracks: of the size and time git has noted, so that it takes them as unchanged.

Else `git commit -a` or `git stash` would record the mask in place of the secret. What a mask holds is nothing
but line ends; where git reads it all the same, the object it makes of that is known by it (`git_internals`).
Secrets that git does not track are ignored by it in the sandbox.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from duckflow.domain.patterns import late
from duckflow.safety.sandbox.view.git_settings import tracked_times

MOST_BYTES = 1_000_000
"""Of a mask; what is larger is masked as an empty file."""

_ENTRY = late(r"([^\0]+)\0\s+ctime: \S+\s+mtime: (\d+):(\d+)\s.*?size: (\d+)\s[^\n]*\n", re.DOTALL)

_SPECIAL = late(r"[\\*?\[\]!# ]")


class TrackedMasks:
    """The masks of one workspace, made again whenever git's index is another one."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._known: tuple[object, ...] = ()
        self._masks: dict[str, str] = {}

    def find(self, paths: Iterable[str], folder: str) -> dict[str, str]:
        """For those of the absolute paths that git tracks: a file below `folder` to be seen instead."""
        wanted = tuple(paths)
        if not wanted or not os.path.lexists(f"{self._workspace}/.git"):
            return {}
        known = (wanted, folder, _stamp(f"{self._workspace}/.git/index"))
        if known != self._known or known[2] is None:
            self._masks = dict(self._make(wanted, Path(folder)))
            self._known = known
        return self._masks

    def _make(self, paths: tuple[str, ...], folder: Path) -> Iterable[tuple[str, str]]:
        folder.mkdir(mode=0o700, exist_ok=True)
        said = tracked_times(self._workspace, [path[len(self._workspace) + 1 :] for path in paths])
        for number, (name, seconds, fraction, size) in enumerate(_ENTRY.findall(said)):
            path = f"{self._workspace}/{name}"
            if path not in paths or int(size) > MOST_BYTES:
                continue
            mask = folder / str(number)
            mask.unlink(missing_ok=True)
            mask.write_bytes(b"\n" * (int(size) or 2))
            mask.chmod(0o444)
            when = int(seconds) * 1_000_000_000 + int(fraction)
            os.utime(mask, ns=(when, when))
            yield path, str(mask)


def ignore(file: str, workspace: str, paths: Iterable[str]) -> None:
    """Tell git to ignore secrets. Commands can write where the file is, so no link there is followed."""
    names = (path[len(workspace) :] for path in paths if "\n" not in path)
    text = "".join(_SPECIAL.sub(r"\\\g<0>", name) + "\n" for name in names)
    with suppress(IsADirectoryError):
        Path(file).unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(
            os.open(file, flags, 0o600), "w", encoding="utf-8", errors="surrogateescape"
        ) as writing:
            writing.write(text)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # of a worktree it is elsewhere
    return found.st_mtime_ns, found.st_size, found.st_ino
