"""Convert file bytes to text and back. An edit keeps the detected encoding (L9)."""

import codecs
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex

Codec = Literal["utf-8", "utf-16-le", "utf-16-be", "cp932", "euc_jp", "euc_jis_2004", "iso2022_jp_ext"]

NAMES: dict[Codec, str] = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp932": "Shift_JIS",
    "euc_jp": "EUC-JP",
    "euc_jis_2004": "EUC-JP",
    "iso2022_jp_ext": "ISO-2022-JP",
}
_MARKS: tuple[tuple[bytes, Codec], ...] = (
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)  # the first one begins with the bytes of the UTF-16 mark
_JAPANESE: tuple[Codec, ...] = ("euc_jp", "cp932", "euc_jis_2004")
_ISO_2022_JP = lazy_regex(rb"\x1b\$[@B]")
_REPLACEMENT = "\ufffd"
_RARE = b"\x98\x9f"
"""First byte pair of the level 2 (rarer) kanji in Shift_JIS."""

_STANDARD = {0xFF5E: "\u301c", 0xFF0D: "\u2212", 0x2225: "\u2016"}
_TWINS: dict[Codec, dict[int, str]] = {
    "cp932": {0x301C: "\uff5e", 0x2212: "\uff0d", 0x2016: "\u2225", 0x2014: "\u2015", 0xA6: "\uffe4"},
    "euc_jp": _STANDARD,
    "euc_jis_2004": _STANDARD,
    "iso2022_jp_ext": _STANDARD,
}
"""Characters that look like another character and share its bytes; each codec knows only one of the two."""


class EncodedText(NamedTuple):
    """Text of a file and its original bytes. `text` includes the byte order mark, if there is one."""

    text: str
    codec: Codec = "utf-8"
    data: bytes = b""

    @property
    def digest(self) -> str:
        """SHA-256 of the original bytes."""
        return hashlib.sha256(self.data).hexdigest()

    def with_text(self, path: str, text: str) -> bytes:
        """Encode a changed text. Parts that did not change keep their original bytes."""
        if _REPLACEMENT in text and _REPLACEMENT not in self.text:
            raise ToolError(
                f"{path}: the new text has U+FFFD, which stands for a character that was lost, and the file "
                "has none. Read the file again and use its own text, or write the character as an escape."
            )
        if _encode(self.text, self.codec) == self.data:
            return encode(path, text, self.codec)
        return self._around_the_same(path, text)

    def _around_the_same(self, path: str, text: str) -> bytes:
        """Encode only changed lines: some characters have two byte forms, and the others must keep theirs."""
        old, new = self.text.split("\n"), text.split("\n")
        raw = self.data.split(b"\n")
        first = common_start(old, new)
        last = common_start(old[first:][::-1], new[first:][::-1])
        known = dict(zip(reversed(old), reversed(raw), strict=True))
        middle = [
            known[line] if line in known else encode(path, line, self.codec)
            for line in new[first : len(new) - last]
        ]
        return b"\n".join((*raw[:first], *middle, *raw[len(raw) - last :]))


def common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines two texts have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def decode(path: str, data: bytes) -> EncodedText:
    """Return the text of a file. Raise ToolError, with the likely reason, if decoding would lose bytes."""
    if data.startswith(_UTF32):
        raise ToolError(f"{path}: is UTF-32 text; convert it first, for example with iconv.")
    if data.isascii() and _ISO_2022_JP.search(data):
        return _by_lines(path, data)
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _strictly(path, data, codec)
    if b"\0" in data:
        raise ToolError(
            f"{path}: is a binary file of {len(data)} bytes, not text.", "reason.not_text", path=path
        )
    try:
        return EncodedText(data.decode("utf-8"), "utf-8", data)
    except UnicodeDecodeError as exc:
        found = _japanese(data)
        if found is not None:
            return found
        raise ToolError(
            f"{path}: is not UTF-8 (byte 0x{data[exc.start]:02x} at offset {exc.start}), nor Shift_JIS or "
            "EUC-JP; it looks like a single-byte encoding such as Latin-1, or damaged. Convert it first, for "
            "example with iconv."
        ) from exc


def encode(path: str, text: str, codec: Codec = "utf-8") -> bytes:
    """Encode a text. Raise ToolError naming the first character that the encoding lacks."""
    if (data := _encode(text, codec)) is not None:
        return data
    place = next(place for place, letter in enumerate(text) if _encode(letter, codec) is None)
    letter = text[place]
    if 0xD800 <= ord(letter) <= 0xDFFF:
        raise ToolError(f"{path}: the text has U+{ord(letter):04X} at {place}, which is no character.")
    line = text.count("\n", 0, place) + 1
    raise ToolError(
        f"{path}: is {NAMES[codec]}, which has no {letter!r} (U+{ord(letter):04X}, line {line} of the new "
        "text). Use characters the file can hold, or ask the user whether to convert it to UTF-8."
    )


def _encode(text: str, codec: Codec) -> bytes | None:
    try:
        return text.translate(_TWINS.get(codec, {})).encode(codec)
    except UnicodeEncodeError:
        return None


def _strictly(path: str, data: bytes, codec: Codec) -> EncodedText:
    try:
        return EncodedText(data.decode(codec), codec, data)
    except UnicodeDecodeError as exc:
        raise ToolError(
            f"{path}: begins like {NAMES[codec]} but is damaged at byte {exc.start}; it is not read as text."
        ) from exc


def _by_lines(path: str, data: bytes) -> EncodedText:
    """Decode ISO-2022-JP text. Refuse text whose lines depend on the lines before them."""
    file = _strictly(path, data, "iso2022_jp_ext")
    alone = (line.decode(file.codec, "replace") for line in data.split(b"\n"))
    if "\n".join(alone) != file.text:
        raise ToolError(f"{path}: is ISO-2022-JP whose lines go over into each other; convert it first.")
    return file


def _japanese(data: bytes) -> EncodedText | None:
    found: dict[EncodedText, int] = {}
    for codec in _JAPANESE:
        with suppress(UnicodeDecodeError):
            text = data.decode(codec)
            # Truncated UTF-8, read as Shift_JIS, consists of rare kanji and half-width kana.
            found[EncodedText(text, codec, data)] = sum(map(_likeness, text))
    best = max(found, key=lambda one: found[one], default=None)
    return best if best and found[best] > 0 else None


def _likeness(letter: str) -> int:
    """Score how Japanese a character looks: kana and common kanji add, rare characters subtract."""
    if letter < "\x80":
        return 0
    if "\u3001" <= letter <= "\u30ff":
        return 3
    if "\u4e00" <= letter <= "\u9fff":
        return 2 if (_encode(letter, "cp932") or _RARE) < _RARE else -1
    return 0 if "\uff01" <= letter <= "\uff5e" or "\u2460" <= letter <= "\u24ff" else -2
