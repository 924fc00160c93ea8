"""Recognition of compiled programs. First bytes prove nothing: a shell runs every other file as a script."""

import io
import os
import struct
from contextlib import suppress
from functools import cache

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular
from duckflow.safety.paths import fold

_ELF = b"\x7fELF"
_ELF_HEADERS = {1: (52, 32, "HHIIIIIHHH"), 2: (64, 56, "HHIQQQIHHH")}
"""By word size: sizes of the header and of a program header, and the fields after the first 16 bytes."""

_ELF_ENTRIES = {1: ("IIIII", 0, 1, 4), 2: ("IIQQQQ", 0, 2, 5)}
"""Fields of a program header, and the places of its type, of the offset and of the size in the file."""

_LOADED, _LOADER = 1, 3
_LONGEST_LOADER = 4096

_SYSTEMS = (bytes(9), b"\3" + bytes(8))
"""Ends of the first 16 bytes: no system or Linux. Because of the zeros, shells don't take it for a script."""

_PROGRAM_TYPES = (2, 3)
_SCRIPTS = lazy_regex(
    r".*\.(sh|bash|zsh|fish|ksh|csh|command|ps1|psm1|bat|cmd|vbs|desktop|action|workflow|scpt|reg|hta|wsf)"
)
"""Names that make a system run a file as a script, whatever it contains."""

_ARCHIVE = lazy_regex(r".*\.jar")
_WINDOWS = lazy_regex(r".*\.(dll|pyd|exe|com|scr)")
_WORD = lazy_regex(rb"[\t\r\x20-\x7e]{8}")


def is_compiled(path: str, content: bytes, *, runs: bool) -> bool:
    """Return whether a file is compiler output, by its name and its structure.

    With `runs`, only a program for this machine counts, because the system gives all others to a shell.
    """
    name = fold(path.rpartition("/")[2])
    if _SCRIPTS.fullmatch(name):
        return False
    if is_program(content):
        return True
    windows = _WINDOWS.fullmatch(name) is not None and _is_windows_program(content)
    return not runs and (windows or (_ARCHIVE.fullmatch(name) is not None and _is_archive(content)))


def is_program(content: bytes) -> bool:
    """Return whether the kernel of this machine runs the content as a compiled program or library."""
    ours = _own_header()
    if ours is None or content[:7] != ours[:7] or content[7:16] not in _SYSTEMS or len(content) < 64:
        return False
    size, entry_size, fields = _ELF_HEADERS[content[4]]
    order = "<" if content[5] == 1 else ">"
    kind, machine, _, _, table, _, _, header, entry, entries = struct.unpack_from(order + fields, content, 16)
    own_machine = struct.unpack_from(order + "H", ours, 18)[0]
    table_fits = entries > 0 and entry == entry_size and size <= table <= len(content) - entries * entry
    if kind not in _PROGRAM_TYPES or machine != own_machine or header != size or not table_fits:
        return False
    return _can_be_loaded(content, order, range(table, table + entries * entry, entry))


def _can_be_loaded(content: bytes, order: str, table: range) -> bool:
    """Return whether the kernel accepts the program headers. What it refuses, a shell runs as a script."""
    fields, *places = _ELF_ENTRIES[content[4]]
    loads = False
    for at in table:
        entry = struct.unpack_from(order + fields, content, at)
        kind, offset, size = (entry[place] for place in places)
        loads = loads or kind == _LOADED
        if kind == _LOADER:
            named = content[offset : offset + size]
            if not 1 < size <= _LONGEST_LOADER or len(named) != size or named[-1] != 0:
                return False
    return loads


def readable_text(content: bytes) -> str:
    """Return the lines that may be text, without zeros, which shells ignore and wide encodings contain."""
    plain = content.replace(b"\0", b"")
    with suppress(UnicodeDecodeError):
        return plain.decode()
    lines = (line for line in plain.split(b"\n") if _WORD.search(line))
    return b"\n".join(lines).decode("utf-8", "replace")


@cache
def _own_header() -> bytes | None:
    header = read_regular(os.path.realpath("/proc/self/exe"), 64)
    return header if header and header.startswith(_ELF) and header[4] in _ELF_HEADERS else None


def _is_windows_program(content: bytes) -> bool:
    """Return whether the content has both headers of a program for Windows, and no line before the second."""
    if len(content) < 64 or not content.startswith(b"MZ") or b"\0" not in content[:64].partition(b"\n")[0]:
        return False
    (place,) = struct.unpack_from("<I", content, 60)
    return content[place : place + 4] == b"PE\0\0"


def _is_archive(content: bytes) -> bool:
    if not content.startswith(b"PK\x03\x04"):
        return False
    import zipfile  # noqa: PLC0415 - few files are archives

    with suppress(zipfile.BadZipFile, ValueError, OSError), zipfile.ZipFile(io.BytesIO(content)) as archive:
        return bool(archive.infolist())
    return False
