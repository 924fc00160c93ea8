"""Apply the effects of a command to the folder (G9, SAFETY 11, 12).

Before anything changes, the approved effects are recorded in the copy, and `keep` gets each batch with the
previous contents. After a crash, the same call finishes the work: changes that are already made count as
done.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from duckflow.domain.files.effects import Effect, Effects
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.copy.target_folder import KeepChanges, LeftEffect, TargetFolder

_BATCH = 256
_BATCH_BYTES = 16_000_000
_FOLDERS = 2
"""Position in the order of changes: the changes before it make room."""


class TakenOver(Frozen):
    """Result of applying effects: single changes (a move is two) in the order they were made."""

    taken: tuple[Effect, ...] = ()
    left: tuple[LeftEffect, ...] = ()


def take_over(
    copy: WorkspaceCopy,
    approved: Effects,
    keep: KeepChanges | None = None,
    *,
    conflicts: Iterable[str] = (),
    live: bool = False,
) -> TakenOver:
    """Apply the approved effects, including build folders. Blocking.

    Paths in `approved.conflicts` are left out unless the user approved them in `conflicts`. With `live`, the
    copy is still in use, so everything is copied out of it and stays in it.
    """
    held = frozenset(approved.conflicts).difference(conflicts)
    reading = copy.read()
    wanted = [*approved.effects]
    unkept: set[str] = set()
    for bulk in approved.bulk:
        below = reading.bulk.get(bulk.path, ())
        wanted += below
        if not bulk.undoable:
            unkept.update(effect.path for effect in below)
    if not live:
        copy.keep(approved=approved)
        _open_closed(copy, wanted)
    try:
        with TargetFolder(copy, live=live) as target:
            for steps in _in_order(effect for effect in wanted if effect.path not in held):
                for batch in _batches(steps):
                    target.make(batch, keep, unkept)
            target.touch(reading.effects.touched)
    except Exception:
        if not live:
            copy.keep()  # failed, not interrupted: the remaining effects wait for another answer
        raise
    for effect in target.taken if live else ():
        copy.note_own(effect.path)
    left = [*target.left, *(LeftEffect(path=path, reason="changed") for path in sorted(held))]
    if not live and not left:
        copy.discard()
    elif not live:
        copy.keep()
    return TakenOver(taken=tuple(target.taken), left=tuple(left))


def _open_closed(copy: WorkspaceCopy, wanted: Iterable[Effect]) -> None:
    """Let the owner into folders that a command closed. In the workspace they are closed at the end."""
    closed = [one.path for one in wanted if one.type == "folder" and _is_closed(one)]
    for path in sorted(closed):
        with suppress(OSError):
            os.chmod(copy.upper_path(path), stat.S_IRWXU)


def _is_closed(folder: Effect) -> bool:
    return folder.mode_after is not None and folder.mode_after & stat.S_IRWXU != stat.S_IRWXU


def _in_order(wanted: Iterable[Effect]) -> tuple[list[Effect], list[Effect]]:
    """Return the steps that make room, and then the others: folders, files, deletions, bits of folders."""
    steps = [step for effect in wanted for step in _steps(effect)]
    made = {one.path for one in steps if one.kind != "deleted"}

    def order(one: Effect) -> tuple[int, int, str]:
        depth = one.path.count("/")
        if one.kind == "deleted":
            # A file in the way of a folder, or a folder with its contents in the way of a file.
            names = one.path.split("/")
            in_the_way = any("/".join(names[: end + 1]) in made for end in range(len(names)))
            files_first = 0 if one.type != "folder" else 1
            return (files_first if in_the_way else 5 + files_first), -depth, one.path
        if one.type == "folder":
            return (_FOLDERS, depth, one.path) if one.kind == "created" else (7, -depth, one.path)
        return 3, 0, one.path

    steps.sort(key=order)
    room = sum(order(one)[0] < _FOLDERS for one in steps)
    return steps[:room], steps[room:]


def _steps(effect: Effect) -> Iterator[Effect]:
    """Split a move into its two halves, and a closed new folder into its creation and its closing."""
    if effect.kind == "moved":
        yield replace(effect, kind="created", before=None, mode_before=None, moved_from="")
        yield Effect(
            path=effect.moved_from, kind="deleted", before=effect.before, mode_before=effect.mode_before
        )
        return
    yield effect
    if effect.kind == "created" and effect.type == "folder" and _is_closed(effect):
        yield replace(effect, kind="mode")


def _batches(steps: Sequence[Effect]) -> Iterator[list[Effect]]:
    batch: list[Effect] = []
    size = 0
    for step in steps:
        if batch and (len(batch) >= _BATCH or size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(step)
        size += step.size
    if batch:
        yield batch
