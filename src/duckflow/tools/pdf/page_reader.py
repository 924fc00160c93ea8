"""Small program that reads a PDF from its standard input and prints its pages, one JSON object a line.

It runs in a separate process, because the parser is native code and the file may be made to attack it. Before
parsing the file, the process gives up everything except computing, reading its input and writing its output.
All text is printed before the first picture, so that a page that can't be drawn costs no text.
"""

import base64
import codecs
import ctypes
import json
import math
import re
import resource
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
from pypdfium2 import raw  # pyright: ignore[reportMissingTypeStubs]

from duckflow.safety.sandbox.child import seccomp
from duckflow.safety.syscalls import LINUX, drop_privileges

PAGES, LETTERS, PICTURES = 20, 40_000, 4
"""Largest number of pages, characters and pictures of one answer."""

SECONDS, MEMORY = 15, 1_000_000_000
_TEXT_SECONDS = 6.0
"""Time for the text of all pages. The remaining pages are left for the next call."""

_PIXELS, _LONGEST, _SCALE = 1_200_000, 4_000, 2.0
"""Largest picture of a page: pixels, pixels of its longer side, and pixels per point (1/72 inch)."""

_FEW = 20
"""Characters of a page with less text than this are a stamp or a page number on a scan."""

_REPLACED = {0x02: "-\n", 0xFFFE: "-\n", **{code: "" for code in range(32) if code not in (2, 9, 10)}}
"""Characters that the parser uses for a hyphen at the end of a line, and other control characters."""

_DOTS = re.compile(r" ?(?:\. ?){5,}")


def pages(data: bytes, start: int, end: int | None) -> Iterator[dict[str, Any]]:
    """Yield the number of pages, the text of the requested ones, and then the pictures of some."""
    try:
        document = pypdfium2.PdfDocument(data)
        count = len(document)
    except pypdfium2.PdfiumError as exc:
        locked = cast("int", exc.err_code) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
        yield {"error": "locked" if locked else "broken"}
        return
    yield {"pages": count}
    drawn = [start - 1] if start == end and start <= count else list[int]()
    room, until = LETTERS, time.monotonic() + _TEXT_SECONDS
    for place in range(start - 1, min(end or count, count, start - 1 + PAGES)):
        if place >= start and (room <= 0 or time.monotonic() > until):
            break
        try:
            page = document[place]
            text, empty = _text_of(page), not raw.FPDFPage_CountObjects(page)
            page.close()
        except pypdfium2.PdfiumError:
            yield {"number": place + 1, "damaged": True}
            continue
        if place >= start and len(text) > room:
            break
        room -= len(text)
        scanned = not empty and len("".join(text.split())) < _FEW
        if scanned and place not in drawn:
            drawn.append(place)
        yield {
            "number": place + 1,
            "text": text[:LETTERS],
            "letters": len(text),
            "empty": empty,
            "scanned": scanned,
        }
    for place in drawn[:PICTURES]:
        with suppress(pypdfium2.PdfiumError):
            yield {"number": place + 1, "picture": base64.b64encode(_picture_of(document[place])).decode()}


def _text_of(page: pypdfium2.PdfPage) -> str:
    """Return the text of a page, without white space at the end of lines and dots in tables of contents."""
    said: str = cast("Any", page.get_textpage()).get_text_bounded()
    text = _DOTS.sub(" … ", said.replace("\r\n", "\n").translate(_REPLACED))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def _picture_of(page: pypdfium2.PdfPage) -> bytes:
    """Return a page as a PNG file."""
    width, height = (max(side, 1.0) for side in page.get_size())
    scale = min(_SCALE, math.sqrt(_PIXELS / (width * height)), _LONGEST / max(width, height))
    drawn: Any = cast("Any", page).render(scale=scale, rev_byteorder=True)  # its types are not known
    lines = ctypes.string_at(drawn.buffer, drawn.stride * drawn.height)
    kept = drawn.width * 3
    starts = range(0, len(lines), drawn.stride)
    content = zlib.compress(b"".join(b"\0" + lines[at : at + kept] for at in starts), 6)
    header = struct.pack(">IIBBBBB", drawn.width, drawn.height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", content), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*one) for one in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def load_everything() -> None:
    """Import what libraries import only when they need it, because no file can be opened later."""
    for needed in ("utf-16-le", "utf-8", "ascii"):
        codecs.lookup(needed)
    page = cast("Any", pypdfium2.PdfDocument.new()).new_page(10, 10)
    _text_of(page)
    _picture_of(page)


def confine() -> None:
    """Give up all files, programs and connections. Raise OSError where Linux does not permit that."""
    limits = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 0),
    )
    for which, most in limits:
        with suppress(ValueError, OSError):  # some systems lack some limits
            resource.setrlimit(which, (most, most))
    if LINUX:
        drop_privileges()
        if seccomp.supported():
            seccomp.apply(seccomp.assemble_computing())


def main() -> None:
    """Read the wanted pages as a line of JSON, and then the file."""
    wanted = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    load_everything()
    confine()
    for one in pages(data, **wanted):
        sys.stdout.buffer.write(json.dumps(one).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
