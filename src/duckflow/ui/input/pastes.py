"""Long texts and pictures that the user pastes: the input line shows a short name for each."""

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from duckflow.domain.files.programs import find_program, program_environment
from duckflow.i18n.catalogue import text

_MOST_LINES, _MOST_CHARS = 8, 800
"""Larger pastes are folded."""
_LARGEST_PICTURE = 5_000_000
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_CLIPBOARDS: tuple[tuple[str, ...], ...] = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-o"),
    ("pngpaste", "-"),
)
"""Programs that print the picture in the clipboard, for Wayland, X and macOS."""
_PATIENCE_S = 5.0


class Pastes:
    """The pastes of one conversation, by the names that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._pictures: dict[str, bytes] = {}

    def fold(self, pasted: str) -> str:
        """Return what to insert for a paste: itself, or the name of a long text or of a picture file."""
        whole = pasted.replace("\r\n", "\n").replace("\r", "\n")
        path = _picture_path(whole)
        if path is not None:
            with suppress(OSError):
                return self.add_picture(path.read_bytes(), str(path))
        if whole.count("\n") < _MOST_LINES and len(whole) <= _MOST_CHARS:
            return whole
        name = text("chat.pasted", number=len(self._texts) + 1, lines=whole.rstrip("\n").count("\n") + 1)
        self._texts[name] = whole
        return name

    def add_picture(self, picture: bytes, path: str = "") -> str:
        """Keep a picture, and return its name."""
        name = text("chat.picture", number=len(self._pictures) + 1, path=path).replace(" ]", "]")
        self._pictures[name] = picture
        return name

    def unfold(self, line: str) -> str:
        """Return a line with the texts in place of their names. Pictures keep their names."""
        for name, whole in self._texts.items():
            line = line.replace(name, whole)
        return line

    def pictures(self, line: str) -> tuple[bytes, ...]:
        """Return the pictures that a line names."""
        return tuple(picture for name, picture in self._pictures.items() if name in line)


def _picture_path(pasted: str) -> Path | None:
    """Return the picture file whose path was pasted or dropped: plain, quoted, escaped, or as an address."""
    line = pasted.strip()
    if "\n" in line or not line.casefold().rstrip("'\"").endswith(_PICTURES):
        return None
    words = [line]
    with suppress(ValueError):
        words += shlex.split(line)
    for word in words:
        path = Path(unquote(word.removeprefix("file://")) if word.startswith("file://") else word)
        with suppress(OSError):
            if path.is_absolute() and path.is_file() and path.stat().st_size <= _LARGEST_PICTURE:
                return path
    return None


async def read_clipboard(root: Path, env: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the picture in the clipboard, None if it holds none or no known program can read it."""
    clean = program_environment(root, env)
    for words in _CLIPBOARDS:
        program = find_program(words[0], root, env)
        if program is None or (sys.platform == "darwin") != (words[0] == "pngpaste"):
            continue
        running = await asyncio.create_subprocess_exec(
            program,
            *words[1:],
            env=clean,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found, _ = await running.communicate()
        except TimeoutError:
            running.kill()
            await running.wait()
            continue
        if running.returncode == 0 and found:
            return found
    return None
