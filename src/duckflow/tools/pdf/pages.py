"""Pages of a PDF for a model: their text, and pictures of pages without text.

The file is parsed by another process, which can't reach files or the network (`page_reader`).
"""

import base64
import binascii
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pydantic import ValidationError

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import Picture
from duckflow.domain.pictures import LARGEST, media_of
from duckflow.safety.files.access import Access
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import ToolResult
from duckflow.tools.programs import run_program

PACKAGE = "pypdfium2"
_SECONDS, _OUTPUT_CAP = 20.0, 30_000_000
_PROGRAM = Path(__file__).with_name("page_reader.py")


class PdfPage(Frozen):
    """One line from the process that parses: the number of pages, an error, a page, or its picture."""

    pages: int = 0
    error: str = ""
    number: int = 0
    text: str = ""
    letters: int = 0
    """Length of the whole text."""
    empty: bool = False
    """True if nothing is on the page."""
    scanned: bool = False
    """True if the page shows content but has hardly any text, as a scan does."""
    damaged: bool = False
    picture: str = ""
    """PNG file in Base64."""


async def read_pages(path: str, data: bytes, start: int, end: int | None, access: Access) -> ToolResult:
    """Return the text of the requested pages, and pictures of some of them."""
    if end is not None and end < start:
        raise ToolError(f"{path}: end ({end}) comes before start ({start}).")
    count, shown = await _parse(path, data, start, end)
    if start > count:
        return ToolResult(text=f"{path} (PDF with {count} pages, none from {start} on)", path=path)
    texts = [one for one in shown if not one.picture]
    drawn = {one.number: picture for one in shown if (picture := _decoded(one.picture))}
    if not texts:
        raise _unreadable(path)
    pictures: list[Picture] = []
    for number, picture in drawn.items():
        name = f"{path} page {number}"
        pictures.append(await run_in_thread(access.keep_picture, name, "image/png", picture))
    upto, last = texts[-1].number, min(end or count, count)
    notes = [f"PDF, pages {start}-{upto} of {count}", "start and end are pages"]
    if upto < last:
        notes.append(f"read on with start={upto + 1}")
    if start != end:
        notes.append("with start = end the page is also shown as a picture")
    body = "\n".join(_words(one, pictured=one.number in drawn) for one in texts)
    return ToolResult(text=f"{path} ({'; '.join(notes)})\n{body}", path=path, pictures=tuple(pictures))


async def _parse(path: str, data: bytes, start: int, end: int | None) -> tuple[int, list[PdfPage]]:
    """Return the number of pages, and what could be read of the requested pages."""
    if find_spec(PACKAGE) is None:
        raise ToolError(
            f"{path}: reading PDFs needs the package {PACKAGE}, which the user can install with "
            "`pip install 'duckflow[pdf]'`.",
            "reason.pdf_package",
        )
    wanted = json.dumps({"start": start, "end": end}).encode() + b"\n"
    command = [sys.executable, "-I", str(_PROGRAM)]
    try:
        ended = await run_program(command, wanted + data, seconds=_SECONDS, most=_OUTPUT_CAP)
    except (TimeoutError, OSError) as exc:
        raise _unreadable(path) from exc
    said = list(_lines(ended.output))
    if not said:
        raise _unreadable(path)
    if said[0].error == "locked":
        raise ToolError(f"{path}: is protected with a password.", "reason.pdf_locked", path=path)
    if said[0].error:
        raise _unreadable(path)
    return said[0].pages, said[1:]


def _unreadable(path: str) -> ToolError:
    return ToolError(
        f"{path}: is damaged, or too complicated to be read as a PDF.", "reason.pdf_unreadable", path=path
    )


def _lines(output: bytes) -> Iterator[PdfPage]:
    """Yield all lines that are complete. The process may have been killed in the middle of one."""
    for line in output.split(b"\n"):
        try:
            yield PdfPage.model_validate_json(line)
        except ValidationError:
            return


def _decoded(picture: str) -> bytes:
    """Return a picture's bytes, or none if it can't be shown."""
    try:
        data = base64.b64decode(picture, validate=True)
    except binascii.Error:
        return b""
    return data if media_of(data) == "image/png" and len(data) <= LARGEST else b""


def _words(page: PdfPage, *, pictured: bool) -> str:
    note, little = "", "hardly any text" if page.text else "no text"
    if page.damaged:
        note = "can't be read"
    elif page.empty and not page.text:
        note = "empty"
    elif pictured:
        note = f"{little}, attached as a picture" if page.scanned else "also attached as a picture"
    elif page.scanned:
        note = f"{little}; start={page.number}, end={page.number} shows it as a picture"
    elif page.letters > len(page.text):
        note = f"cut, it has {page.letters} characters"
    heading = f"--- page {page.number}" + (f" ({note})" if note else "")
    return f"{heading}\n{page.text}" if page.text else heading
