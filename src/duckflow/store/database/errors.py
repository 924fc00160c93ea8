"""Translates all errors of the database file into errors that the user can act on."""

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from duckflow.domain.errors import UserError

_PRIMARY = 0xFF
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_ACCESS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_BY_CODE = {
    sqlite3.SQLITE_FULL: "store.disk_full",
    sqlite3.SQLITE_IOERR: "store.disk_error",
    **dict.fromkeys(_NO_ACCESS, "store.read_only"),
    **dict.fromkeys(_IN_USE, "store.locked"),
    **dict.fromkeys(_DAMAGE, "store.damaged"),
}
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
_BY_ERRNO = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "store.disk_full"),
    **dict.fromkeys(_NOT_WRITABLE, "store.read_only"),
}


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the content of the file is damaged, not just inaccessible."""
    return _code(error) in _DAMAGE


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Translate errors of SQLite and the system for the user; programming errors are raised unchanged."""
    try:
        yield
    except sqlite3.Error as exc:
        key = _BY_CODE.get(_code(exc))
        if key is None:
            raise
        raise UserError(key, path=str(path), reason=str(exc)) from exc
    except OSError as exc:
        key = _BY_ERRNO.get(exc.errno or 0, "store.disk_error")
        raise UserError(key, path=str(path), reason=exc.strerror or str(exc)) from exc


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code, -1 for errors raised by Python's sqlite3 module itself."""
    return getattr(error, "sqlite_errorcode", -1) & _PRIMARY
