"""Reads and writes files that users edit, mostly TOML. Every fault is reported in one sentence."""

import os
import stat
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from duckflow.domain.errors import UsageError
from duckflow.domain.patterns import lazy_regex

MAX_BYTES = 1_000_000
_SEARCHED = 20_000
"""Longest text, in characters, in which to look for the line of a key: each attempt parses the text."""
_CANDIDATES = 20
_PLACE = lazy_regex(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


def read_text(path: Path) -> str | None:
    """Return the file's text, or None if it does not exist."""
    try:
        data = _read(path)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise UsageError("config.unreadable", path=path, reason=exc.strerror or exc) from exc
    if len(data) > MAX_BYTES:
        raise UsageError("config.too_large", path=path, limit=MAX_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise UsageError("config.not_utf8", path=path, line=line) from exc


def _read(path: Path) -> bytes:
    # Without O_NONBLOCK, opening a named pipe at this path would block forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError("config.not_a_file", path=path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def save_text(path: Path, text: str) -> None:
    """Write a private file durably and atomically. Raise OSError if that fails."""
    real = Path(os.path.realpath(path))  # write to the target of a link, as dotfile managers use links
    descriptor, temporary = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(real)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def parse(text: str, path: Path) -> dict[str, Any]:
    """Parse a TOML text."""
    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise UsageError("config.too_deep", path=path) from exc
    except ValueError as exc:  # also raised for a number with 5,000 digits, not only for invalid TOML
        line, column = _place(str(exc), text)
        reason = _PLACE.sub("", str(exc)).strip()
        raise UsageError("config.broken", path=path, line=line, column=column, reason=reason) from exc


def _place(message: str, text: str) -> tuple[int, int]:
    found = _PLACE.search(message)
    if found and found[1]:
        return int(found[1]), int(found[2])
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1


def line_of(key: str, text: str) -> int | None:
    """Return the number of the line that sets a dotted key, None if it is not found by parsing."""
    if len(text) > _SEARCHED:
        return None
    lines = [f"{line}\n" for line in text.split("\n")]
    word = key.rpartition(".")[2]
    for start in [number for number, line in enumerate(lines) if word in line][:_CANDIDATES]:
        # The text is valid again at the end of the value, which may be some lines further down.
        parsed = (_has("".join(lines[:end]), key) for end in range(start + 1, start + _CANDIDATES))
        if next((has for has in parsed if has is not None), False):
            return None if _has("".join(lines[:start]), key) else start + 1
    return None


def _has(text: str, key: str) -> bool | None:
    """Return whether a TOML text sets the key. None if it is not valid TOML."""
    try:
        found: Any = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]  # pyright: ignore[reportUnknownVariableType] - TOML values have no types of ours
    return True


def read_variables(path: Path) -> dict[str, str]:
    """Return the variables in a file with lines of the form `NAME=value`; none if there is no file."""
    lines = (line.strip() for line in (read_text(path) or "").splitlines())
    pairs = (line.removeprefix("export ").partition("=") for line in lines if not line.startswith("#"))
    found = {key.strip(): value.strip() for key, sign, value in pairs if sign}
    return {key: value[1:-1] if value[:1] in ("'", '"') else value for key, value in found.items()}
