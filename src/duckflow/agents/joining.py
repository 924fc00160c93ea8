"""Joins the changes of several copies in another: `python -m duckflow.agents.joining`, run on that one (O2).

Standard input has one JSON object a line for each copy to join, in order. Paths that only one copy changed
are applied. Text that several changed is merged in three ways by git. The program prints one JSON object for
each conflict. In places that do not fit together the first version stays.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effect, Effects
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.copy.copies import AboutCopy, WorkspaceCopy
from duckflow.safety.sandbox.copy.copy_writer import apply_effects
from duckflow.tools.editing.differences import unified

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
    did: str = ""
    """The second change in words, with its difference, if the file could not be merged."""


class _NotMerged(Exception):
    """A file can't be merged: one version is missing, no text, or too large."""


def main() -> None:
    """Join the copies of standard input in the current folder."""
    root = Path.cwd()
    moved: dict[str, str] = {}
    with closing(Workspace(root)) as workspace:
        for line in sys.stdin:
            for conflict in join(CopyToJoin.model_validate(json.loads(line)), workspace, moved):
                sys.stdout.write(f"{conflict.model_dump_json()}\n")


def join(one: CopyToJoin, workspace: Workspace, moved: dict[str, str]) -> Sequence[Conflict]:
    """Apply the effects of one copy to the folder; merge what is no longer as that copy found it.

    `moved` collects the files that copies moved, with their new paths.
    """
    copy = WorkspaceCopy(Path(one.folder), one.about, lock=-1)
    effects = [_with_present_mode(effect, one, workspace) for effect in one.effects.effects]
    left = apply_effects(copy, replace(one.effects, effects=tuple(effects)), live=True)
    waiting = [effect for effect in one.effects.effects if left.keys() & {effect.path, effect.moved_from}]
    settled = [_settle(effect, copy, one, workspace, moved) for effect in waiting]
    moved |= {effect.moved_from: effect.path for effect in one.effects.effects if effect.kind == "moved"}
    # A file that became a link is deleted and created; its last effect says all.
    found = {conflict.path: conflict for conflict in settled if conflict is not None}
    above = {folder for path in found for folder in map(str, PurePosixPath(path).parents)}
    return [conflict for path, conflict in found.items() if path not in above]


def _with_present_mode(effect: Effect, one: CopyToJoin, workspace: Workspace) -> Effect:
    """Let a change of content alone keep the permission bits that another copy gave the file."""
    if effect.kind == "changed" and effect.mode_after == effect.mode_before and effect.path in one.bases:
        with suppress(ToolError):
            if (now := workspace.look(effect.path)) is not None:
                return replace(effect, mode_after=now.mode)
    return effect


def _settle(
    effect: Effect, copy: WorkspaceCopy, one: CopyToJoin, workspace: Workspace, moved: Mapping[str, str]
) -> Conflict | None:
    """Merge a change that could not be applied. Return a conflict if it does not fit."""
    text = effect.type == "file" and effect.kind in ("created", "changed", "moved")
    theirs = copy.content(effect.path, MOST_MERGED) if text else None
    at = target = effect.path
    if effect.kind == "moved":
        at = effect.moved_from
    elif effect.path in moved and workspace.status(effect.path) is None:
        at = target = moved[effect.path]
    try:
        marked = _merge(effect, (at, target), theirs, one, workspace)
    except (OSError, ToolError, subprocess.SubprocessError, _NotMerged):
        return Conflict(path=at, name=one.name, did=_in_words(effect, theirs, one))
    return Conflict(path=target, name=one.name, hunks=_hunks(marked)) if _MARK in marked else None


def _merge(
    effect: Effect, places: tuple[str, str], theirs: bytes | None, one: CopyToJoin, workspace: Workspace
) -> bytes:
    """Merge a change into the file at the first place, and move it to the second.

    Return its content with git's marks where both changed it; the first version stays there.
    """
    at, target = places
    ours = workspace.look(at)  # None for a link, too
    mode = effect.mode_after if effect.mode_after != effect.mode_before else None
    if ours is not None and effect.kind == "mode":
        workspace.write_bytes(at, ours.data, expected=ours.digest, mode=mode)
        return b""
    base = _base(one, effect.moved_from or effect.path)
    if ours is None or theirs is None or len(ours.data) > MOST_MERGED or b"\0" in ours.data + base + theirs:
        raise _NotMerged
    marked = _merged(ours.data, base, theirs, one.name, "--diff3")
    joined = marked if _MARK not in marked else _merged(ours.data, base, theirs, one.name, "--ours")
    if at != target:
        workspace.write_bytes(target, joined, expected=effect.after, mode=mode)
        workspace.delete(at, expected=ours.digest)
    elif joined != ours.data or mode is not None:
        workspace.write_bytes(target, joined, expected=ours.digest, mode=mode)
    return marked


def _base(one: CopyToJoin, path: str) -> bytes:
    return Path(one.bases[path]).read_bytes() if path in one.bases else b""


def _in_words(effect: Effect, theirs: bytes | None, one: CopyToJoin) -> str:
    """Return a clause on what a copy did to a path."""
    if effect.kind == "deleted":
        return "has deleted it"
    if effect.kind == "moved":
        return f"has moved it to {effect.path}"
    if effect.kind == "mode":
        return "has changed its permissions"
    if effect.type == "link":
        return f"has made it a link to {effect.link_target}"
    if effect.type == "folder":
        return "has made it a folder"
    base = _base(one, effect.path)
    if theirs is None or b"\0" in theirs:
        return f"has put {effect.size} bytes there that are no text; they are discarded"
    before = None if not base or b"\0" in base else base.decode("utf-8", "replace")
    return f"has changed it:\n{unified(effect.path, before, theirs.decode('utf-8', 'replace'))}"


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
