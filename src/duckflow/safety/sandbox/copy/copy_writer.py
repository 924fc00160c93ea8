"""Writer of effects: applies the approved effects of a command to the folder (G9, SAFETY 11, 12).

A path is changed only if it is still as it was when the effects were read. The approved effects are first
recorded in the copy, so after a crash the same call finishes the work: a path that already has its new state
counts as done.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress

from duckflow.domain.files.changes import FileChange
from duckflow.domain.files.effects import Effect, Effects
from duckflow.domain.frozen import replace
from duckflow.safety.descriptors import (
    READ,
    closing_fd,
    copy_to_new,
    open_readable,
    set_mode,
    temporary_in,
    temporary_name,
)
from duckflow.safety.files.access import Access
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.confined_open import LOOK, ConfinedFolder, rename_to_new
from duckflow.safety.files.errors import SENTENCES
from duckflow.safety.files.git_directory import split_root
from duckflow.safety.files.replacing import NotAsExpected, Place, put_back
from duckflow.safety.files.temporary import name_for_exchange, sweep
from duckflow.safety.policy.git_index import entries_digest
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.copy.copy_reader import OVERLAY_ATTRIBUTES
from duckflow.safety.sandbox.copy.effect_groups import loses_content
from duckflow.safety.sandbox.copy.layers import file_digest, read_whole, text_digest
from duckflow.safety.sandbox.copy.set_aside import Found, SetAside
from duckflow.safety.syscalls import c_call

CHANGED = "changed"
"""Reason for leaving out a path: it has changed since its effect was read."""

_BATCH = 256
_BATCH_BYTES = 16_000_000
_FOLDERS = 2
"""Rank of new folders among the changes. Changes with a lower rank make room for others."""

_NEW_FILES = ("created", "changed")
_MOST_OPEN = 256
_SYNC_ONE_BY_ONE = 8
_NOT_MOVED = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP)
"""Errors of a file system that can't move or link a file out of the copy, so that it must be copied."""


def apply_effects(
    copy: WorkspaceCopy,
    approved: Effects,
    access: Access | None = None,
    *,
    conflicts: Iterable[str] = (),
    live: bool = False,
) -> dict[str, str]:
    """Apply the approved effects, including build folders. Return left-out paths with the reasons. Blocking.

    Paths in `approved.conflicts` are left out unless the user approved them in `conflicts`. With `live`,
    commands still use the copy, so its files are copied into the workspace, not moved.
    """
    crashed = copy.about.approved is not None
    refused = frozenset(approved.conflicts).difference(conflicts)
    reading = copy.read(live=live)
    wanted = [*approved.effects]
    unkept: set[str] = set()
    known = {one.path: one for one in reading.effects.bulk}
    for bulk in approved.bulk:
        below = reading.bulk.get(bulk.path, ())
        if below and (known[bulk.path].kept < bulk.kept or not {*known[bulk.path].lost} <= {*bulk.lost}):
            continue  # a command that runs on has deleted more there; its next reading is judged
        wanted += below
        if not bulk.undoable:
            kept = bulk.kept
            unkept.update(one.path for one in below if not (kept and loses_content(one, bulk.path)))
    if not live:
        copy.keep(approved, access.owner if access else None)
        _open_closed(copy, wanted)
    try:
        with closing(CopyWriter(copy, access, unkept, live=live)) as writer:
            writer.put_back_strays(approved.effects, crashed=crashed)
            for steps in _in_order(effect for effect in wanted if effect.path not in refused):
                for batch in _batches(steps):
                    writer.apply(batch)
            writer.touch(reading.effects.touched)
    except Exception:
        if not live:
            copy.keep()  # it failed and was not interrupted: the remaining effects wait for another answer
        raise
    left = writer.left | dict.fromkeys(sorted(refused), CHANGED)
    if not live and not left:
        copy.discard()
    elif not live:
        copy.keep()
    return left


def _open_closed(copy: WorkspaceCopy, wanted: Iterable[Effect]) -> None:
    """Open folders of the copy that a command closed. In the workspace they are closed at the end."""
    for path in sorted(one.path for one in wanted if _is_closed_folder(one)):
        with (
            suppress(OSError),
            copy.source(path) as (above, name),
            closing_fd(os.open(name, LOOK | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)) as opened,
        ):
            set_mode(opened, stat.S_IRWXU)


def _is_closed_folder(effect: Effect) -> bool:
    closed = effect.mode_after is not None and effect.mode_after & stat.S_IRWXU != stat.S_IRWXU
    return effect.type == "folder" and closed


def _in_order(wanted: Iterable[Effect]) -> tuple[list[Effect], list[Effect]]:
    """Return two lists of steps: those that make room for others, and the rest, in order."""
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
    """Split a move into a creation and a deletion, and a closed new folder into creating and closing it."""
    if effect.kind == "moved":
        yield replace(effect, kind="created", before=None, mode_before=None, moved_from="")
        yield Effect(
            path=effect.moved_from, kind="deleted", before=effect.before, mode_before=effect.mode_before
        )
        return
    yield effect
    if effect.kind == "created" and _is_closed_folder(effect):
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


class CopyWriter:
    """Changes a folder, and its git directory if that lies outside. `unkept` paths can't be undone."""

    def __init__(self, copy: WorkspaceCopy, access: Access | None, unkept: set[str], *, live: bool) -> None:
        self._copy = copy
        self._access = access
        self._unkept = unkept
        self._live = live
        self._roots = [ConfinedFolder(one.lower) for one in copy.mounts]
        self._folders: dict[str, int] = {}
        self._changed_any = False
        self._aside = SetAside(str(copy.folder / "aside"))
        self.left: dict[str, str] = {}
        """Paths that were left out, with the reason for each."""

    def close(self) -> None:
        """Make the changed folders durable, remove what was replaced, and close all folders."""
        try:
            self._sync_folders()
            self._aside.close()
            self.left |= dict.fromkeys(self._aside.changed, CHANGED)
        finally:
            for root in self._roots:
                root.close()

    def put_back_strays(self, approved: Iterable[Effect], *, crashed: bool) -> None:
        """Put back what someone saved at the moment in which a killed process replaced it."""
        steps = [step for one in approved for step in _steps(one) if step.type != "folder"]
        for above in {step.path.rpartition("/")[0] for step in steps} if crashed else ():
            with suppress(OSError):
                sweep(self._folder(above or "."), older_than_s=0)
        for effect in steps:
            place = self._aside.left_by_a_crash(effect.path)
            if place is None:
                continue
            digest, *_ = _look_at(place, read=False)
            with suppress(OSError):
                now, status, _ = self._now(effect.path, read=False)
                if digest not in (None, effect.before, effect.after) and now == effect.after:
                    folder, name = self._place(effect.path)
                    ours = None if status is None else (status.st_dev, status.st_ino)
                    put_back(place, (folder, name), ours)

    def apply(self, batch: list[Effect]) -> None:
        """Apply one batch: check the paths, record the changes, make new content durable, change."""
        pending: list[tuple[Effect, Found | None]] = []
        recorded: list[FileChange] = []
        contents: dict[str, bytes] = {}
        for effect in batch:
            keeps = self._access is not None and effect.path not in self._unkept
            try:
                is_pending, found, before = self._look(effect, read=keeps)
            except OSError as exc:
                self._leave(effect, exc)
                continue
            if not is_pending:
                self._note_done(effect)
                continue
            pending.append((effect, found))
            if keeps:
                change = effect.as_change()
                if effect.path.endswith("/index") and effect.after and effect.type == "file":
                    written = self._copy.content(effect.path, LARGEST) or b""
                    change = replace(change, entries=entries_digest(effect.path, written))
                recorded.append(change)
                if change.before and before is not None:
                    contents[change.before] = before
        if self._access is not None and recorded:
            self._access.record(recorded, contents)
        if not self._live:
            self._make_durable([one for one, _ in pending if one.type == "file" and one.kind in _NEW_FILES])
        for effect, found in pending:
            try:
                self._change(effect, found)
                self._note_done(effect)
            except OSError as exc:
                self._leave(effect, exc)

    def touch(self, paths: Iterable[str]) -> None:
        """Give files with unchanged content the time they have in the copy, because make compares times."""
        for path in paths:
            with suppress(OSError), self._copy.source(path) as (above, inside):
                status = os.stat(inside, dir_fd=above, follow_symlinks=False)
                folder, name = self._place(path)
                times = (status.st_atime_ns, status.st_mtime_ns)
                os.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)

    def _look(self, effect: Effect, *, read: bool) -> tuple[bool, Found | None, bytes | None]:
        """Return whether a change is still to be made, the current entry, and its content if wanted.

        Raises NotAsExpected if the path has changed.
        """
        digest, status, content = self._now(effect.path, read=read)
        found = None if status is None else Found(digest, status, time.time_ns())
        mode = None if status is None else stat.S_IMODE(status.st_mode)
        if effect.type == "folder":
            is_folder = status is not None and stat.S_ISDIR(status.st_mode)
            if effect.kind == "deleted":
                return is_folder, found, None
            if status is not None and not is_folder:
                raise NotAsExpected
            return mode != effect.mode_after, found, None
        if digest == effect.after and (digest is None or mode == effect.mode_after or effect.type == "link"):
            return False, found, None
        if digest != effect.before:
            raise NotAsExpected
        return True, found, content

    def _now(self, path: str, *, read: bool) -> tuple[str | None, os.stat_result | None, bytes | None]:
        try:
            return _look_at(self._place(path), read=read)
        except (FileNotFoundError, NotADirectoryError):
            return None, None, None

    def _note_done(self, effect: Effect) -> None:
        self._changed_any = True
        if self._live:
            self._copy.note_own(effect.path)

    def _make_durable(self, files: list[Effect]) -> None:
        """Strip overlay's attributes from new files and sync them, before any name points to them."""
        opened: list[int] = []
        for effect in files:
            with suppress(OSError), self._copy.source(effect.path) as (above, name):
                place = f"/proc/self/fd/{above}/{name}"
                for given in os.listxattr(place, follow_symlinks=False):
                    if given.startswith(OVERLAY_ATTRIBUTES) or self._gives_rights(given, place, effect.path):
                        os.removexattr(place, given, follow_symlinks=False)
                if len(files) <= _SYNC_ONE_BY_ONE:
                    opened.append(os.open(name, READ, dir_fd=above))
        for one in opened:
            os.fsync(one)
            os.close(one)
        if len(files) > _SYNC_ONE_BY_ONE:  # all layers of a copy are on one file system
            with closing_fd(os.open(self._copy.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as upper:
                c_call("syncfs", upper)

    def _gives_rights(self, given: str, upper: str, path: str) -> bool:
        """Return whether an attribute gives access to other users, a change that the user was not shown."""
        if not given.startswith("system."):
            return False
        value = os.getxattr(upper, given, follow_symlinks=False)
        with suppress(OSError):
            folder, name = self._place(path)
            return os.getxattr(f"/proc/self/fd/{folder}/{name}", given, follow_symlinks=False) != value
        return True

    def _change(self, effect: Effect, found: Found | None) -> None:
        if effect.path == ".":
            os.chmod(self._folder("."), effect.mode_after or 0)
            return
        folder, name = self._place(effect.path)
        if effect.kind == "deleted":
            if effect.type == "folder":
                os.rmdir(name, dir_fd=folder)
            elif found is not None:
                self._aside.remove((folder, name), effect.path, found)
            if (opened := self._folders.pop(effect.path, None)) is not None:
                os.close(opened)
        elif effect.kind == "mode":
            _set_mode(folder, name, effect.mode_after or 0, found)
        elif effect.type == "folder":
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
            _set_mode(folder, name, (effect.mode_after or 0) | stat.S_IRWXU)
        elif effect.type == "link":
            temporary = temporary_name()
            os.symlink(effect.link_target, temporary, dir_fd=folder)
            self._put((folder, temporary), (folder, name), effect, found)
        else:
            self._put_file(effect, (folder, name), found)

    def _put_file(self, effect: Effect, target: Place, found: Found | None) -> None:
        """Write exactly the content that the effect names, in one step."""
        if self._live:
            with suppress(FileNotFoundError), closing_fd(self._copy.shown.open(effect.after)) as opened:
                self._put_copy(opened, effect, target, found)
                return
        with self._copy.source(effect.path) as source, closing_fd(open_readable(*source)) as opened:
            if not self._live:
                if file_digest(opened) != effect.after:
                    raise OSError(errno.ESTALE, "the copy is not what was approved")
                os.fchmod(opened, effect.mode_after or 0)
                if self._move(source, effect, target, found):
                    return
            self._put_copy(opened, effect, target, found)

    def _move(self, source: Place, effect: Effect, target: Place, found: Found | None) -> bool:
        """Move a file out of the copy into its place. Return False if the file systems can't do that."""
        try:
            if found is None:
                rename_to_new(source, target)
                return True
            new = self._aside.new(effect.path)
            os.link(source[1], new[1], src_dir_fd=source[0], dst_dir_fd=new[0], follow_symlinks=False)
            self._put(new, target, effect, found)
        except OSError as exc:
            if exc.errno not in _NOT_MOVED:
                raise
            return False
        os.unlink(source[1], dir_fd=source[0])
        return True

    def _put_copy(self, opened: int, effect: Effect, target: Place, found: Found | None) -> None:
        """Copy a file, and put the copy in its place if it has the content that the effect names."""
        folder = target[0]
        with temporary_in(folder) as temporary:
            os.lseek(opened, 0, os.SEEK_SET)
            copy_to_new(opened, folder, temporary, effect.mode_after or 0)
            with closing_fd(open_readable(folder, temporary)) as written:
                if file_digest(written) != effect.after:
                    said = "still being written" if self._live else "the copy is not what was approved"
                    raise OSError(errno.ESTALE, said)
            if times := self._copy.shown.times.get(effect.path):
                os.utime(temporary, ns=times, dir_fd=folder, follow_symlinks=False)
        self._put((folder, temporary), target, effect, found)

    def _put(self, new: Place, target: Place, effect: Effect, found: Found | None) -> None:
        if found is not None:
            small = found.status.st_size <= LARGEST
            if new[0] == target[0] and found.digest is not None and small:
                new = name_for_exchange(new, found.digest)
            self._aside.replace(new, target, effect.path, found)
            return
        try:
            rename_to_new(new, target)
        except OSError:
            os.unlink(new[1], dir_fd=new[0])
            raise

    def _place(self, path: str) -> tuple[int, str]:
        above, _, name = path.rpartition("/")
        return self._folder(above or "."), name

    def _folder(self, path: str) -> int:
        """Open a folder by its real path. It stays open until its entries are synced at the end."""
        if path not in self._folders:
            if len(self._folders) >= _MOST_OPEN:
                self._sync_folders()
            outside, below = split_root(f"{path}/", self._copy.about.git_directory)
            self._folders[path] = self._roots[outside].open_folder(below.rstrip("/") or ".")
        return self._folders[path]

    def _sync_folders(self) -> None:
        """Sync the changed folders; if they are many, sync their whole file systems, which is faster."""
        opened = [*self._folders.values()]
        self._folders.clear()
        if self._changed_any and len(opened) > _SYNC_ONE_BY_ONE:
            for one in {os.fstat(one).st_dev: one for one in opened}.values():
                c_call("syncfs", one)
        for one in opened:
            if self._changed_any and len(opened) <= _SYNC_ONE_BY_ONE:
                os.fsync(one)
            os.close(one)

    def _leave(self, effect: Effect, exc: OSError) -> None:
        changed = isinstance(exc, (NotAsExpected, FileExistsError))
        self.left[effect.path] = (
            CHANGED if changed else SENTENCES.get(exc.errno or 0) or str(exc.strerror or exc)
        )


def _look_at(place: Place, *, read: bool) -> tuple[str | None, os.stat_result | None, bytes | None]:
    """Return the digest and the status of what is at a place, and its content if wanted and not too large."""
    folder, name = place
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=folder)
        return text_digest(target), status, os.fsencode(target)
    if not stat.S_ISREG(status.st_mode):
        return None, status, None
    with closing_fd(open_readable(folder, name)) as opened:
        data = read_whole(opened, LARGEST) if read else None
        digest = file_digest(opened) if data is None else hashlib.sha256(data).hexdigest()
        return digest, status, data


def _set_mode(folder: int, name: str, mode: int, found: Found | None = None) -> None:
    """Set permission bits, but never through a link or of another file that someone put there."""
    with closing_fd(os.open(name, LOOK | os.O_NOFOLLOW, dir_fd=folder)) as opened:
        now = os.fstat(opened)
        if stat.S_ISLNK(now.st_mode) or (found is not None and now.st_ino != found.status.st_ino):
            raise NotAsExpected
        set_mode(opened, mode)
