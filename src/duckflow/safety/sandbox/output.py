"""Output of commands: limited in size, made readable, shown as it arrives."""

import codecs
import time
from collections.abc import Callable

from duckflow.domain.live_updates import OutputPiece
from duckflow.domain.patterns import lazy_regex

Emit = Callable[[OutputPiece], None]

LINES_KEPT = 1_000

WHOLE_KEPT = 10_000_000
"""Number of bytes of a command's output to keep for later reading if the result is shortened."""

PIECES_A_SECOND = 20
LONGEST_PIECE = 4_000

_SEQUENCES = lazy_regex(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[ -/]*[0-Z\\^-~]"
    r"|\x1b"
)
_UNSEEN = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufff9-\ufffb\u202a-\u202e\u2066-\u2069]")
_BINARY_SHARE = 0.1
_LOOKED_AT = 4_000


class CommandOutput:
    """Beginning and end of an output, its size, and its first `kept` bytes."""

    def __init__(self, most_bytes: int, most_lines: int = LINES_KEPT, *, kept: int = 0) -> None:
        self._half = max(most_bytes // 2, 1)
        self._lines = max(most_lines // 2, 1)
        self._kept = kept
        self._all = bytearray()
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._newlines = 0

    def take(self, block: bytes) -> None:
        """Add output. Only a limited part is kept in memory."""
        self._size += len(block)
        self._newlines += block.count(b"\n")
        self._all += block[: max(self._kept - len(self._all), 0)]
        room = self._half - len(self._head)
        if room > 0:
            self._head += block[:room]
            block = block[room:]
        self._tail += block[-2 * self._half :]
        if len(self._tail) > 4 * self._half:
            del self._tail[: -2 * self._half]

    def text(self) -> str:
        """Return the output as readable text, or its beginning and end with a line about the omitted part."""
        if _is_binary(bytes(self._head[:_LOOKED_AT])):
            return f"(binary output, {self._size} bytes, not shown)"
        if self._fits:
            return plain((self._head + self._tail).decode(errors="replace"))
        rest = self._head + self._tail if self._size <= 2 * self._half else self._tail
        head = b"".join(bytes(self._head).splitlines(keepends=True)[: self._lines])
        tail = b"".join(bytes(rest[-self._half :]).splitlines(keepends=True)[-self._lines :])
        lines = self._newlines - head.count(b"\n") - tail.count(b"\n")
        first = head.count(b"\n") + 1
        left_out = (
            f"… {lines} lines from line {first} on ({self._size - len(head) - len(tail)} bytes) left out …"
        )
        beginning, end = (plain(_decode_part(part)) for part in (head, tail))
        return f"{beginning.rstrip()}\n{left_out}\n{end}"

    @property
    def _fits(self) -> bool:
        return self._size <= 2 * self._half and self._newlines <= 2 * self._lines

    def whole(self) -> str:
        """Return the kept output if `text` shows less of it, else an empty string."""
        if self._fits or _is_binary(bytes(self._head[:_LOOKED_AT])):
            return ""
        text = plain(self._all.decode(errors="replace"))
        more = self._size - len(self._all)
        return f"{text}\n… {more} bytes behind this were not kept …" if more and text else text


class LiveOutput:
    """Shows output as it arrives, in few pieces. Output that arrives too fast is shown in part."""

    def __init__(self, emit: Emit | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._shown_at = -1.0

    def take(self, block: bytes) -> None:
        """Show new output if enough time has passed since the last piece; otherwise keep it for the next."""
        if self._emit is None:
            return
        self._waiting = (self._waiting + self._decoder.decode(block[-4 * LONGEST_PIECE :]))[-LONGEST_PIECE:]
        if self._clock() - self._shown_at >= 1 / PIECES_A_SECOND:
            self._show(self._whole_sequences())

    def finish(self) -> None:
        """Show the remaining output."""
        self._show(len(self._waiting))

    def _show(self, end: int) -> None:
        piece, self._waiting = plain(self._waiting[:end]), self._waiting[end:]
        if piece and self._emit is not None:
            self._emit(OutputPiece(text=piece))
            self._shown_at = self._clock()

    def _whole_sequences(self) -> int:
        """Return where to cut without splitting an escape sequence; one at the end may be incomplete."""
        start = self._waiting.rfind("\x1b", -64)
        if start < 0:
            return len(self._waiting)
        found = _SEQUENCES.match(self._waiting, start)
        whole = found is not None and start + 1 < found.end() < len(self._waiting)
        return len(self._waiting) if whole else start


def plain(text: str) -> str:
    """Return text without terminal control codes. Of an overwritten line, only the last version stays."""
    text = _SEQUENCES.sub("", text)
    text = text.replace("\r\n", "\n")
    if "\r" in text:  # by lines, because one expression would take time quadratic in the length of a line
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _UNSEEN.sub("", text)


def _is_binary(beginning: bytes) -> bool:
    if b"\0" not in beginning:
        return False
    text = beginning.decode(errors="replace")
    odd = sum(letter == "\ufffd" or (letter < " " and letter not in "\n\r\t\x1b") for letter in text)
    return odd > _BINARY_SHARE * len(text)


def _decode_part(data: bytes) -> str:
    """Decode output that was cut at any byte, leaving out a partial character at the cut."""
    start = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:])
