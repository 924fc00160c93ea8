"""Taking the effects of a command over into the folder itself (SPEC G9, SAFETY 11, 12).

Before anything changes, what is approved is noted in the copy, and whoever keeps the journal gets each
batch with what was there before. After a crash the same call finishes the work: what is already there counts
as done.
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
"""In the order of changes: what comes before them makes room."""


class TakenOver(Frozen):
    """What was done: single changes (a move is two) in the order they were made."""

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
    """Make the approved effects real, build folders included. Blocking.

    A path in `approved.conflicts` is left unless it is in `conflicts`: those the user said yes to. `live`:
    the copy is still in use, so everything is copied out of it and stays there.
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
            copy.keep()  # it failed and was not interrupted: what is left waits for another answer
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
    """Let the owner into folders that a command closed; in the workspace they are closed at the end."""
    closed = [one.path for one in wanted if one.type == "folder" and _is_closed(one)]
    for path in sorted(closed):
        with suppress(OSError):
            os.chmod(copy.made(path), stat.S_IRWXU)


def _is_closed(folder: Effect) -> bool:
    return folder.mode_after is not None and folder.mode_after & stat.S_IRWXU != stat.S_IRWXU


def _in_order(wanted: Iterable[Effect]) -> tuple[list[Effect], list[Effect]]:
    """What makes room; then folders, files, what is to go, and permission bits of folders last."""
    steps = [step for effect in wanted for step in _steps(effect)]
    made = {one.path for one in steps if one.kind != "deleted"}

    def order(one: Effect) -> tuple[int, int, str]:
        depth = one.path.count("/")
        if one.kind == "deleted":
            # A file in the way of a folder, or a folder in the way of a file, with all that is in it.
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
    """A move as its two halves; a new folder with few rights as one that is closed at the end."""
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
