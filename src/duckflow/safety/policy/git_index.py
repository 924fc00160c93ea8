"""Git's index, read strictly (G10): `git restore` writes whatever it contains, wherever its names lead."""

import hashlib
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from duckflow.safety.policy.git_config import ReadFile, UnreadableFile

_HEADER = struct.Struct(">4sII")
_STAT = 40
_EXTENDED, _LONGEST, _INTENT, _ASSUMED, _SKIPPED = 0x4000, 0xFFF, 0x2000, 0x8000, 0x4000
_MALFORMED = (ValueError, IndexError, struct.error)
_KNOWN = frozenset((b"TREE", b"REUC", b"UNTR", b"FSMN", b"EOIE", b"IEOT", b"link", b"sdir"))


class IndexEntry(NamedTuple):
    """File that the index contains. In a sparse index also a folder, by its tree."""

    path: str
    mode: int
    id: str


def entries_digest(path: str, data: bytes) -> str | None:
    """Return the SHA-256 of the entries if the path is that of git's index and it can be read.

    What git alone notes of them, such as times, does not count, but what the user set does.
    """
    if path.rpartition("/")[2] != "index" or ".git" not in path.split("/"):
        return None
    for algorithm in ("sha1", "sha256"):
        with suppress(*_MALFORMED):
            if (found := _whole_index(data, algorithm)) is not None:
                return hashlib.sha256(repr(found).encode()).hexdigest()
    return None


class _ReadEntry(NamedTuple):
    name: bytes
    mode: int
    id: bytes
    stage: int
    intended: bool
    settings: int
    """Bits that only the user sets: the file counts as unchanged, or is not in the work tree."""


def read_index(path: str, read: ReadFile, algorithm: str) -> frozenset[IndexEntry]:
    """Return the entries of an index, of all stages. Raise UnreadableFile unless it is as git writes it."""
    return frozenset(
        IndexEntry(_text(one.name), one.mode, one.id.hex()) for one in _entries(path, read, algorithm)
    )


def watched_files(path: str, read: ReadFile, algorithm: str, *, watched: bool = True) -> frozenset[str]:
    """Return the files whose changes git notices, or (False) those that the index tells it to overlook."""
    return frozenset(
        _text(one.name) for one in _entries(path, read, algorithm) if bool(one.settings) != watched
    )


def _entries(path: str, read: ReadFile, algorithm: str) -> "Sequence[_ReadEntry]":
    data = read(path)
    if data is None:
        return ()
    try:
        whole = _whole_index(data, algorithm)
        if whole is None:
            folder = path.rpartition("/")[0]
            whole = _IndexReader(data, algorithm).entries(lambda name: read(f"{folder}/{name}"))
    except _MALFORMED as exc:
        raise UnreadableFile(path) from exc
    return whole


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


@lru_cache(maxsize=2)
def _whole_index(data: bytes, algorithm: str) -> "tuple[_ReadEntry, ...] | None":
    """Return the entries of an index, None if it shares some with another file.

    The content after one command is that before the next one. A large index takes a second to read.
    """
    try:
        return tuple(_IndexReader(data, algorithm).entries(_never_shared))
    except _SharedIndex:
        return None


class _SharedIndex(Exception):
    """Raised if an index shares entries with another file."""


def _never_shared(name: str) -> bytes | None:
    raise _SharedIndex(name)


class _IndexReader:
    def __init__(self, data: bytes, algorithm: str) -> None:
        self._data = data
        self._algorithm = algorithm
        self._size = hashlib.new(algorithm).digest_size
        self._end = len(data) - self._size
        sum_, said = hashlib.new(algorithm, data[: self._end]).digest(), data[self._end :]
        signature, self._version, self._count = _HEADER.unpack_from(data)
        _expect(signature == b"DIRC" and self._version in (2, 3, 4) and said in (sum_, bytes(self._size)))
        self._places: list[int] = []

    def entries(self, read: ReadFile) -> Sequence[_ReadEntry]:
        """Return the entries, after a check that every extension agrees with them."""
        found = list(self._own())
        extensions = dict(self._extensions())
        link = extensions.get(b"link")
        if link is not None:
            found = self._with_shared(found, link, read)
        keys = [(one.name, one.stage) for one in found]
        _expect(all(one < other for one, other in pairwise(keys)) and (b"", 0) not in keys)
        sparse = b"sdir" in extensions
        _expect(all(stat.S_ISDIR(one.mode) <= (sparse and one.name.endswith(b"/")) for one in found))
        if b"EOIE" in extensions:
            _expect(struct.unpack_from(">I", extensions[b"EOIE"])[0] == self._places[-1])
        for offset, count in struct.iter_unpack(">II", extensions.get(b"IEOT", b"")[4:]):
            at = self._places.index(offset)
            _expect(at + count < len(self._places))
        if b"TREE" in extensions:
            self._check_trees(extensions[b"TREE"], found)
        return found

    def _own(self) -> Iterator[_ReadEntry]:
        data, size, at, name = self._data, self._size, _HEADER.size, b""
        for _ in range(self._count):
            self._places.append(at)
            mode, id_, start = (
                struct.unpack_from(">I", data, at + 24)[0],
                data[at + _STAT : at + _STAT + size],
                at,
            )
            (flags,) = struct.unpack_from(">H", data, at := at + _STAT + size)
            at, more = at + 2, 0
            if flags & _EXTENDED:
                _expect(self._version > 2)
                (more,) = struct.unpack_from(">H", data, at)
                at += 2
            if self._version == 4:
                removed, at = _varint(data, at)
                _expect(removed <= len(name))
                name = name[: len(name) - removed]
            else:
                name = b""
            end = data.index(b"\0", at)
            name, at = name + data[at:end], end + 1
            _expect(flags & _LONGEST == min(len(name), _LONGEST))
            if self._version != 4:
                padded = start + (end - start + 8) // 8 * 8
                _expect(not data[at:padded].strip(b"\0"))
                at = padded
            _expect(at <= self._end)
            settings = flags & _ASSUMED | (more & _SKIPPED) >> 1
            yield _ReadEntry(name, mode, id_, flags >> 12 & 3, bool(more & _INTENT), settings)
        self._places.append(at)

    def _extensions(self) -> Iterator[tuple[bytes, bytes]]:
        at = self._places[-1]
        while at < self._end:
            (length,) = struct.unpack_from(">I", self._data, at + 4)
            name, start = self._data[at : at + 4], at + 8
            at = start + length
            _expect(name in _KNOWN and at <= self._end)
            yield name, self._data[start:at]

    def _with_shared(self, own: list[_ReadEntry], link: bytes, read: ReadFile) -> list[_ReadEntry]:
        """Return the entries of a split index: those of the shared file, without the removed ones."""
        shared = link[: self._size]
        if not shared.strip(b"\0"):
            return own
        data = read(f"sharedindex.{shared.hex()}")
        _expect(data is not None and data[-self._size :] == shared)
        base = list(_IndexReader(data or b"", self._algorithm)._own())
        removed, at = _bits(link, self._size, len(base))
        replaced, _ = _bits(link, at, len(base))
        unnamed = iter([one for one in own if not one.name])
        for place in sorted(replaced):
            base[place] = next(unnamed)._replace(name=base[place].name)
        _expect(next(unnamed, None) is None)
        left = {(one.name, one.stage): one for at, one in enumerate(base) if at not in removed}
        left |= {(one.name, one.stage): one for one in own if one.name}
        return sorted(left.values(), key=lambda one: (one.name, one.stage))

    def _check_trees(self, said: bytes, entries: Sequence[_ReadEntry]) -> None:
        """Check the ids of trees that git would commit without looking at the entries again."""
        known, at = self._tree_ids(entries), 0
        waiting: list[tuple[bytes, int]] = []
        while at < len(said):
            name, at = said[at : (end := said.index(b"\0", at))], end + 1
            counts, at = said[at : (end := said.index(b"\n", at))], end + 1
            entry_count, subtrees = (int(one) for one in counts.split(b" "))
            while waiting and not waiting[-1][1]:
                waiting.pop()
            path = name
            if waiting:
                above, left = waiting[-1]
                waiting[-1] = above, left - 1
                path = above + name
            if entry_count >= 0:
                _expect(known.get(path) == said[at : at + self._size])
                at += self._size
            waiting.append((path + b"/" if path else b"", subtrees))

    def _tree_ids(self, entries: Sequence[_ReadEntry]) -> dict[bytes, bytes]:
        """Return the ids of the trees of all folders without conflicts. The paths do not end in a slash."""
        folders: dict[bytes, dict[bytes, tuple[int, bytes]]] = {b"": {}}
        unmerged: set[bytes] = set()
        for one in entries:
            path = one.name.rstrip(b"/")
            if one.stage or one.intended:
                unmerged.update(_above(path))
                continue
            above, _, name = path.rpartition(b"/")
            if above not in folders:
                folders.update((folder, {}) for folder in _above(path) if folder not in folders)
            folders[above][name + b"/" * stat.S_ISDIR(one.mode)] = one.mode, one.id
        found = {one.name[:-1]: one.id for one in entries if stat.S_ISDIR(one.mode)}
        for folder in sorted(folders, key=lambda path: path.count(b"/") + bool(path), reverse=True):
            if folder in unmerged:
                continue
            listed = sorted(folders[folder].items())
            tree = b"".join(b"%o %s\0%s" % (mode, name.rstrip(b"/"), id_) for name, (mode, id_) in listed)
            found[folder] = hashlib.new(self._algorithm, b"tree %d\0" % len(tree) + tree).digest()
            if folder:
                above, _, name = folder.rpartition(b"/")
                folders[above][name + b"/"] = stat.S_IFDIR, found[folder]
        return found


def _above(path: bytes) -> Iterator[bytes]:
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number in git's variable-length form, and the position after it."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = (value + 1 << 7) | (data[at] & 127)
    return value, at + 1


def _bits(data: bytes, at: int, most: int) -> tuple[set[int], int]:
    """Return the positions of a compressed bitmap (EWAH), and the position in the data after it."""
    size, count = struct.unpack_from(">II", data, at)
    words = struct.unpack_from(f">{count}Q", data, at + 8)
    found, bit, place = set[int](), 0, 0
    while place < count:
        run, literals = words[place] >> 1 & 0xFFFFFFFF, words[place] >> 33
        _expect(bit + (run + literals) * 64 <= most + 64 and place + literals < count)
        if words[place] & 1:
            found.update(range(bit, bit + run * 64))
        bit += run * 64
        for word in words[place + 1 : place + 1 + literals]:
            found.update(bit + shift for shift in range(64) if word >> shift & 1)
            bit += 64
        place += 1 + literals
    _expect(size <= most and max(found, default=-1) < size)
    return found, at + 8 + count * 8 + 4


def _expect(condition: object) -> None:
    if not condition:
        raise ValueError
