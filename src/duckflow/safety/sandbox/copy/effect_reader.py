"""Reading what a command did from the upper layer of its copy (SPEC G9). The cost follows what was changed.

In `upper`, a file that was removed is a character device 0/0, a folder that was removed and made again is
marked opaque, and everything else that lies there was made or changed. What is there may have been made to
deceive: no link is followed, nothing but regular files is opened, and what is too deep to be looked at is
dropped, not skipped.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from duckflow.domain.files.effects import BulkEffect, Dropped, DropReason, Effect, Effects, FileType
from duckflow.domain.frozen import replace
from duckflow.safety.policy.effects import told_apart
from duckflow.safety.policy.protected import protection_of

BUILD_FOLDERS = frozenset(
    (
        *("node_modules", "bower_components", ".pnpm-store", ".yarn", ".venv", "venv", ".tox", ".nox"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
        *("target", "dist", "build", "out", ".gradle", ".next", ".nuxt", ".svelte-kit", ".turbo", ".cache"),
        *("coverage", "htmlcov", ".nyc_output", ".eggs", "_build", "deps", ".dart_tool", "DerivedData"),
        ".parcel-cache",
    )
)
"""Folders that tools make for themselves; `*.egg-info` too."""

OPAQUE = "user.overlay.opaque"
OVERLAY_ATTRIBUTES = "user.overlay."

LONGEST_PATH = 3_500
DEEPEST = 200
"""Bytes and folders of a path below the workspace; what lies deeper is dropped, which is told."""

UNDOABLE_FILES = 2_000
UNDOABLE_BYTES = 32_000_000
"""A build folder with more than this is taken over without being kept for undo."""

_BLOCK = 1 << 20
_SET_ID = stat.S_ISUID | stat.S_ISGID
_TYPES: dict[int, FileType] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_DROPPED: dict[int, DropReason] = {
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}

IsIgnored = Callable[[list[str]], frozenset[str]]
"""Which of these folders, relative to the workspace, the project says to ignore."""


class Reading(NamedTuple):
    """What was found: the effects as told, and for each build folder all that they stand for."""

    effects: Effects
    bulk: dict[str, tuple[Effect, ...]]

    def joined(self, more: "Reading") -> "Reading":
        """With what was found in another layer; nothing in there is told as a whole."""
        here, there = self.effects, more.effects
        effects = Effects(
            effects=here.effects + there.effects,
            bulk=here.bulk,
            dropped=here.dropped + there.dropped,
            conflicts=here.conflicts + there.conflicts,
            touched=here.touched + there.touched,
        )
        return Reading(effects, self.bulk)


class EffectReader:
    """Reads one copy once. `own`: the times of paths that Duckflow itself changed since the command began.

    `prefix` is put before each path. `git_outside`: below `.git` there is nothing in this layer.
    """

    def __init__(
        self,
        upper: str,
        lower: str,
        started_ns: int,
        readable_outside: Iterable[str],
        own: Mapping[str, int],
        prefix: str = "",
        *,
        git_outside: bool = False,
    ) -> None:
        self._upper = upper
        self._lower = lower
        self._started_ns = started_ns
        self._own = own
        self._outside = tuple(readable_outside)
        self._prefix = prefix
        self._git_outside = git_outside
        self._found: list[Effect] = []
        self._dropped: list[Dropped] = []
        self._conflicts: list[str] = []
        self._touched: list[str] = []
        self._opened: dict[str, int] = {}

    def read(self, is_ignored: IsIgnored) -> Reading:
        """All of it."""
        try:
            if not self._prefix:
                self._compare_mode(".", _status(self._lower), os.lstat(self._upper))
            self._compare_folder("")
        finally:
            for path, mode in self._opened.items():
                os.chmod(path, mode)
        if self._prefix:
            self._found = [replace(one, path=f"{self._prefix}{one.path}") for one in self._found]
        ignored = is_ignored(_ignorable(self._found)) if self._found else frozenset[str]()
        single, bulk = _split(self._found, ignored)
        told = tuple(_tell(path, within) for path, within in bulk.items())
        return Reading(
            Effects(
                effects=tuple(_pair_moves(single)),
                bulk=told,
                dropped=tuple(self._dropped),
                conflicts=tuple(f"{self._prefix}{path}" for path in dict.fromkeys(self._conflicts)),
                touched=tuple(f"{self._prefix}{path}" for path in self._touched),
            ),
            {path: tuple(within) for path, within in bulk.items()},
        )

    def _compare_folder(self, start: str) -> None:
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            names = self._names_in_copy(f"{self._upper}/{folder}")
            for name in names:
                path = f"{folder}/{name}" if folder else name
                if _is_unspeakable(path):
                    self._drop(path, "unreadable")
                elif self._compare(path):
                    waiting.append(path)
            if _is_opaque(f"{self._upper}/{folder}"):
                self._note_gone(folder, names)

    def _names_in_copy(self, folder: str) -> list[str]:
        """What is in a folder of the copy, also if the command closed it: it is opened while this reads."""
        try:
            return os.listdir(folder)
        except PermissionError:
            self._opened[folder] = stat.S_IMODE(os.lstat(folder).st_mode)
            os.chmod(folder, 0o700)
            return os.listdir(folder)

    def _note_gone(self, folder: str, still: list[str]) -> None:
        """In a folder that was removed and made again, what was there before and is not now."""
        if not stat.S_ISDIR(_mode(f"{self._lower}/{folder}")):
            return
        for name in set(_names(f"{self._lower}/{folder}")).difference(still):
            self._delete(f"{folder}/{name}" if folder else name)

    def _compare(self, path: str) -> bool:
        """Note what became of one path; True for a folder that has to be looked into."""
        now = os.lstat(f"{self._upper}/{path}")
        before = _status(f"{self._lower}/{path}")
        kind = stat.S_IFMT(now.st_mode)
        if is_whiteout(now):
            self._delete(path)
            return False
        if path == ".git" and self._git_outside and kind == stat.S_IFDIR:
            self._drop(path, "unreadable")  # a repository in place of the file that leads to the real one
            return False
        if kind in _DROPPED:
            self._drop(path, _DROPPED[kind])
            if before is not None:
                self._delete(path)
            return False
        if before is not None and stat.S_IFMT(before.st_mode) != kind:
            self._delete(path)
            before = None
        self._note_conflict(path, before, now)
        if kind == stat.S_IFDIR:
            self._compare_mode(path, before, now)
            return True
        if kind == stat.S_IFLNK:
            self._compare_link(path, before)
        else:
            self._compare_file(path, before, now)
        return False

    def _compare_mode(self, path: str, before: os.stat_result | None, now: os.stat_result) -> None:
        mode = self._safe_mode(path, before, now)
        if before is None:
            self._found.append(Effect(path=path, kind="created", type="folder", mode_after=mode))
        elif stat.S_IMODE(before.st_mode) != mode:
            self._found.append(
                Effect(
                    path=path,
                    kind="mode",
                    type="folder",
                    mode_before=stat.S_IMODE(before.st_mode),
                    mode_after=mode,
                )
            )

    def _compare_link(self, path: str, before: os.stat_result | None) -> None:
        target = os.readlink(f"{self._upper}/{path}")
        was = os.readlink(f"{self._lower}/{path}") if before is not None else None
        if target == was:
            return
        if leads_out(path, target, self._lower, self._outside):
            self._drop(path, "link_out")
            return
        self._found.append(
            Effect(
                path=path,
                kind="created" if was is None else "changed",
                type="link",
                before=None if was is None else text_digest(was),
                after=text_digest(target),
                link_target=target,
                size=len(os.fsencode(target)),
            )
        )

    def _compare_file(self, path: str, before: os.stat_result | None, now: os.stat_result) -> None:
        after = file_digest(f"{self._upper}/{path}")
        was = file_digest(f"{self._lower}/{path}") if before is not None else None
        if after is None or (before is not None and was is None):
            self._drop(path, "unreadable")
            return
        mode = self._safe_mode(path, before, now)
        mode_before = None if before is None else stat.S_IMODE(before.st_mode)
        if after == was and mode == mode_before:
            if before is not None and before.st_mtime_ns != now.st_mtime_ns:
                self._touched.append(path)
            return
        self._found.append(
            Effect(
                path=path,
                kind="created" if was is None else "mode" if after == was else "changed",
                before=was,
                after=after,
                mode_before=mode_before,
                mode_after=mode,
                size=now.st_size,
            )
        )

    def _safe_mode(self, path: str, before: os.stat_result | None, now: os.stat_result) -> int:
        """The permission bits, without set-id bits that are neither old nor given by the folder above."""
        mode = stat.S_IMODE(now.st_mode)
        given = 0 if before is None else before.st_mode & _SET_ID
        if stat.S_ISDIR(now.st_mode):
            given |= stat.S_ISGID & _mode(f"{self._upper}/{os.path.dirname(path)}")
        if mode & _SET_ID & ~given:
            self._drop(path, "set_id")
        return mode & ~(_SET_ID & ~given)

    def _delete(self, path: str) -> None:
        """Note that a path is gone, with all that was below it."""
        waiting = [path]
        while waiting:
            one = waiting.pop()
            before = _status(f"{self._lower}/{one}")
            if before is None:
                continue
            self._note_conflict(one, before, None)
            kind = _TYPES.get(stat.S_IFMT(before.st_mode))
            if kind is None or _is_unspeakable(one):
                self._drop(one, "unreadable")
                continue
            mode = stat.S_IMODE(before.st_mode)
            self._found.append(
                Effect(path=one, kind="deleted", type=kind, before=self._digest(one, kind), mode_before=mode)
            )
            if kind == "folder":
                waiting += [f"{one}/{name}" for name in _names(f"{self._lower}/{one}")]

    def _digest(self, path: str, kind: FileType) -> str | None:
        if kind == "folder":
            return None
        real = f"{self._lower}/{path}"
        return text_digest(os.readlink(real)) if kind == "link" else file_digest(real)

    def _note_conflict(self, path: str, before: os.stat_result | None, now: os.stat_result | None) -> None:
        """Note a path that somebody else changed since the command began.

        Of a folder, only its own bits count.
        """
        if before is not None and not stat.S_ISDIR(before.st_mode):
            if before.st_ctime_ns > self._started_ns and before.st_ctime_ns != self._own.get(
                f"{self._prefix}{path}"
            ):
                self._conflicts.append(path)
        elif before is None and now is not None and stat.S_ISREG(now.st_mode):
            above = _status(f"{self._lower}/{os.path.dirname(path)}")
            meanwhile = above is not None and above.st_ctime_ns > self._started_ns
            if meanwhile and _has_origin(f"{self._upper}/{path}"):
                self._conflicts.append(path)

    def _drop(self, path: str, reason: DropReason) -> None:
        shown = os.fsencode(f"{self._prefix}{path}").decode("utf-8", "backslashreplace")
        self._dropped.append(Dropped(path=shown, reason=reason))


def _is_unspeakable(path: str) -> bool:
    """Too deep, or no text: nobody could be asked about it."""
    is_text = path.isascii() or path.encode("utf-8", "replace").decode() == path
    return not is_text or path.count("/") > DEEPEST or len(os.fsencode(path)) > LONGEST_PATH


def leads_out(path: str, target: str, root: str, outside: Iterable[str]) -> bool:
    """Whether a link leads anywhere but into the workspace or where everyone may only read."""
    absolute = os.path.normpath(os.path.join(root, os.path.dirname(path), target))
    return not any(absolute == place or absolute.startswith(f"{place}/") for place in (root, *outside))


def is_whiteout(status: os.stat_result) -> bool:
    """Whether this stands for a file that was removed."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def file_digest(path: str) -> str | None:
    """SHA-256 of a regular file, None if it can't be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        opened = os.open(path, flags)
    except PermissionError:
        opened = _open_closed(path, flags)
    except OSError:
        return None
    if opened is None:
        return None
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        digest = hashlib.sha256()
        while block := os.read(opened, _BLOCK):
            digest.update(block)
        return digest.hexdigest()
    except OSError:
        return None
    finally:
        os.close(opened)


def _open_closed(path: str, flags: int) -> int | None:
    """A file of our own that its owner may not read: open it for a moment, and close it again."""
    try:
        mode = os.lstat(path).st_mode
        os.chmod(path, stat.S_IMODE(mode) | stat.S_IRUSR, follow_symlinks=True)
        try:
            return os.open(path, flags)
        finally:
            os.chmod(path, stat.S_IMODE(mode), follow_symlinks=True)
    except OSError:
        return None


def text_digest(text: str) -> str:
    """SHA-256 of a link's target."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _mode(path: str) -> int:
    found = _status(path)
    return 0 if found is None else found.st_mode


def _is_opaque(folder: str) -> bool:
    with suppress(OSError):
        return os.getxattr(folder, OPAQUE, follow_symlinks=False) == b"y"
    return False


def _has_origin(path: str) -> bool:
    with suppress(OSError):
        return bool(os.listxattr(path, follow_symlinks=False).count(f"{OVERLAY_ATTRIBUTES}origin"))
    return False


def _is_build_folder(name: str) -> bool:
    return name in BUILD_FOLDERS or name.endswith(".egg-info")


def _ignorable(found: Iterable[Effect]) -> list[str]:
    """The folders that something changed in and that are no build folder by their name."""
    folders: set[str] = set()
    for effect in found:
        names = effect.path.split("/")
        above = names if effect.type == "folder" else names[:-1]
        if ".git" in names or any(map(_is_build_folder, above)):
            continue
        folders.update("/".join(above[: end + 1]) for end in range(len(above)))
    return sorted(folders)


def _split(found: Iterable[Effect], ignored: frozenset[str]) -> tuple[list[Effect], dict[str, list[Effect]]]:
    single: list[Effect] = []
    bulk: dict[str, list[Effect]] = {}
    for effect in found:
        above = _bulk_of(effect, ignored)
        if above is None:
            single.append(effect)
        else:
            bulk.setdefault(above, []).append(effect)
    return single, bulk


def _bulk_of(effect: Effect, ignored: frozenset[str]) -> str | None:
    """The build or ignored folder that tells of it; None if it is told by itself, as protected names are."""
    names = effect.path.split("/")
    last = len(names) if effect.type == "folder" else len(names) - 1
    for end in range(last):
        folder = "/".join(names[: end + 1])
        built = _is_build_folder(names[end])
        if built or folder in ignored:
            apart = told_apart(effect.path) or (not built and protection_of(effect.path) != "none")
            return None if apart else folder
    return None


def _tell(path: str, within: list[Effect]) -> BulkEffect:
    files = [effect for effect in within if effect.type != "folder"]
    size = sum(effect.size for effect in files)
    return BulkEffect(
        path=path,
        files=len(files),
        size=size,
        deleted=sum(effect.kind == "deleted" for effect in files),
        undoable=len(files) <= UNDOABLE_FILES and size <= UNDOABLE_BYTES,
    )


def _pair_moves(found: list[Effect]) -> Iterable[Effect]:
    """Tell a file that was removed and one that was made with the same content as one that was moved."""
    gone: dict[str, list[Effect]] = {}
    for effect in found:
        if effect.kind == "deleted" and effect.type == "file" and effect.before:
            gone.setdefault(effect.before, []).append(effect)
    moves: dict[str, Effect] = {}
    taken: set[str] = set()
    for effect in found:
        if effect.kind != "created" or effect.type != "file" or not gone.get(effect.after or ""):
            continue
        sources = gone[effect.after or ""]
        name = os.path.basename(effect.path)
        same_name = [one for one in sources if os.path.basename(one.path) == name]
        if not same_name and not effect.size:
            continue  # all empty files have the same content
        source = (same_name or sources)[0]
        sources.remove(source)
        taken.add(source.path)
        moves[effect.path] = replace(
            effect, kind="moved", moved_from=source.path, before=source.before, mode_before=source.mode_before
        )
    for effect in sorted(found, key=lambda one: (one.path, one.kind != "deleted")):
        if effect.kind == "deleted" and effect.path in taken:
            continue
        yield moves.get(effect.path, effect) if effect.kind == "created" else effect
