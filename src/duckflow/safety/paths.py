"""Path names: check and clean paths that a model writes. File stamps: detect whether a file changed."""

import os
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from duckflow.domain.errors import ToolError

LONGEST_NAME = 255
LONGEST_PATH = 4096
"""In bytes, as Linux counts path lengths."""

_JOINERS = "\u200c\u200d"  # used in ordinary Persian words and in many emoji
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def relative_path(text: str, roots: Iterable[str], *, folder: bool = False) -> str:
    """Return `text` as a path below the workspace; `roots` are the absolute names of the workspace."""
    check_characters(text)
    inside = _below(text, roots) if text.startswith("/") else text
    if not folder and inside.endswith("/"):
        raise ToolError(f"{text}: ends in a slash; name a file.")
    parts = [part for part in inside.split("/") if part not in ("", ".")]
    for part in parts:
        _check_name(text, part)
    if not parts and not folder:
        raise ToolError(f"{text}: this is the workspace itself; name a file in it.")
    if parts and parts[0] == "~":
        raise ToolError(f"{text}: ~ has no meaning here; paths are relative to the workspace.")
    path = "/".join(parts) or "."
    if len(path.encode()) >= LONGEST_PATH:
        raise ToolError(f"The path is too long: {len(path.encode())} bytes, {LONGEST_PATH - 1} at most.")
    return path


@lru_cache(4096)
def fold(name: str) -> str:
    """Return a name as a lenient file system compares it: no case, look-alikes or invisible characters."""
    if name.isascii():
        name = name.lower()  # same result, and nearly all names are ASCII
    else:
        name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        name = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    name = name.partition(":")[0]  # NTFS, seen from WSL: name:stream opens name
    return name.rstrip(". ") or name  # NTFS drops dots and spaces at the end


def printable(name: str) -> str:
    """Return a file name that is safe to display: invisible or undecodable characters become escapes."""
    shown = (
        f"\\u{ord(letter):04x}"
        if unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS
        else letter
        for letter in name
    )
    return "".join(shown)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a clean path is `folder` or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return, sorted, those of these absolute paths that lie inside none of the other paths."""
    found = set(paths)
    return tuple(sorted(one for one in found if found.isdisjoint(_folders_of(one))))


def _folders_of(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def check_characters(text: str) -> None:
    """Raise ToolError for an empty path, a path with invisible characters, or a backslash."""
    if not text:
        raise ToolError("The path is empty; name a file relative to the workspace.")
    for letter in text:
        if unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS:
            raise ToolError(f"{printable(text[:200])}: U+{ord(letter):04X} may not be part of a path.")
    if "\\" in text:
        raise ToolError(f"{text[:200]}: write / between folders, not a backslash.")


def _check_name(text: str, part: str) -> None:
    alike = unicodedata.normalize("NFKC", part)
    if part == "..":
        raise ToolError(
            f"{text[:200]}: .. is not accepted; give the path relative to the workspace.",
            "reason.outside",
            path=text[:200],
        )
    if alike != part and (alike in (".", "..") or "/" in alike):
        raise ToolError(f"{text[:200]}: has a look-alike of . or / in it.")
    if len(part.encode()) > LONGEST_NAME:
        raise ToolError(
            f"{part[:40]}…: a name has at most {LONGEST_NAME} bytes, this has {len(part.encode())}."
        )


def _below(text: str, roots: Iterable[str]) -> str:
    for root in roots:
        prefix = root.rstrip("/")
        if text == prefix:
            return "."
        if text.startswith(prefix + "/"):
            return text[len(prefix) + 1 :] or "."
    raise ToolError(
        f"{text[:200]}: is outside the workspace; give a path relative to the workspace.",
        "reason.outside",
        path=text[:200],
    )


class FileStamp(NamedTuple):
    """Identity, times, size and mode of a file or folder. They differ after every change to it."""

    device: int
    inode: int
    changed_ns: int
    status_ns: int
    size: int
    mode: int


def stamp_of(path: str) -> FileStamp | None:
    """Return the FileStamp of a file, link or folder, None if nothing exists at the path."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return FileStamp(
        found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode
    )
