"""Joins the changes of several copies in another: `python -m duckflow.agents.joining`, run on that one (O2).

Standard input has one JSON object a line for each copy to join, in order. Paths that only one copy changed
are applied. Text that several changed is merged in three ways by git. The program prints one JSON object for
each conflict. In places that do not fit together the first version stays.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.copy.copies import AboutCopy, WorkspaceCopy
from duckflow.safety.sandbox.copy.copy_writer import apply_effects

MOST_MERGED = 4_000_000
"""Largest size in bytes of a file that is merged."""

_MOST_CONFLICTS = 127
"""Exit codes of `git merge-file` up to this one are numbers of conflicts."""

_MARK = b"<<<<<<< others"
_AROUND = 3
"""Lines shown around a conflict."""


class CopyToJoin(Frozen):
    """A copy with its effects, and for each path that others changed too, its content before all of them."""

    name: str
    folder: str
    about: AboutCopy
    effects: Effects
    bases: dict[str, str]
    """Files with the content of each such path before; a path that was not there is missing."""


class Conflict(Frozen):
    """A path that two copies changed in ways that do not fit together."""

    path: str
    name: str
    """Name of the copy whose change came second."""
    hunks: str = ""
    """The places with both versions in git's marks; empty if the file could not be merged at all."""


def main() -> None:
    """Join the copies of standard input in the current folder."""
    root = Path.cwd()
    with closing(Workspace(root)) as workspace:
        for line in sys.stdin:
            for conflict in join(CopyToJoin.model_validate(json.loads(line)), workspace):
                sys.stdout.write(f"{conflict.model_dump_json()}\n")


def join(one: CopyToJoin, workspace: Workspace) -> Sequence[Conflict]:
    """Apply the effects of one copy to the folder; merge what is no longer as that copy found it."""
    copy = WorkspaceCopy(Path(one.folder), one.about, lock=-1)
    left = apply_effects(copy, one.effects, live=True)
    kept = {effect.path: effect for effect in one.effects.effects if effect not in one.effects.caches}
    found: list[Conflict] = []
    for path in (path for path in left if path in kept):
        effect = kept[path]
        text = effect.type == "file" and effect.kind in ("created", "changed")
        theirs = copy.content(path, MOST_MERGED) if text else None
        hunks = "" if theirs is None else _merge(path, theirs, one, workspace)
        if hunks is not None:
            found.append(Conflict(path=path, name=one.name, hunks=hunks))
    return found


def _merge(path: str, theirs: bytes, one: CopyToJoin, workspace: Workspace) -> str | None:
    """Merge a file as far as possible. Return the places with both versions, None if there are none."""
    try:
        ours = workspace.read_bytes(path, cap=MOST_MERGED)
        base = Path(one.bases[path]).read_bytes() if path in one.bases else b""
        if b"\0" in ours + base + theirs:
            return ""
        marked = _merged(ours, base, theirs, one.name, "--diff3")
        joined = marked if _MARK not in marked else _merged(ours, base, theirs, one.name, "--ours")
        if joined != ours:
            workspace.write_bytes(path, joined, expected=hashlib.sha256(ours).hexdigest())
    except (OSError, ToolError, subprocess.SubprocessError):
        return ""
    return _hunks(marked) if _MARK in marked else None


def _merged(ours: bytes, base: bytes, theirs: bytes, name: str, how: str) -> bytes:
    git = find_program("git", Path.cwd(), os.environ)
    if git is None:
        raise FileNotFoundError("git")
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place) / file for file in ("ours", "base", "theirs")]
        for file, content in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(content)
        labels = [word for label in ("others", "before", name) for word in ("-L", label)]
        done = subprocess.run(  # noqa: S603 - git from outside the folder, with files of our own
            [git, "merge-file", "-p", how, *labels, *files],
            capture_output=True,
            check=False,
            cwd=place,
            env=program_environment(Path.cwd(), os.environ),
        )
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        raise subprocess.SubprocessError(done.stderr.decode(errors="replace"))
    return done.stdout


def _hunks(marked: bytes) -> str:
    """Return the marked places with a few lines around them."""
    lines = marked.decode("utf-8", "replace").split("\n")
    shown: set[int] = set()
    for start in (number for number, line in enumerate(lines) if line.startswith("<<<<<<< others")):
        end = next(number for number in range(start, len(lines)) if lines[number].startswith(">>>>>>>"))
        shown.update(range(max(start - _AROUND, 0), min(end + _AROUND + 1, len(lines))))
    parts = [(("…\n" if number - 1 not in shown else "") + lines[number]) for number in sorted(shown)]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
