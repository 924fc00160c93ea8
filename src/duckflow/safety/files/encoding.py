"""Bytes of a file as text: UTF-8, or a reason that names what they seem to be instead."""

import codecs

from duckflow.domain.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_GUESSES = (("iso2022_jp", "ISO-2022-JP"), ("euc_jp", "EUC-JP"), ("cp932", "Shift_JIS"))
_LOOKED_AT = 65_536


def decode(path: str, data: bytes) -> str:
    """UTF-8 text, exactly; a byte order mark stays as its first character."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise ToolError(f"{path}: is {name} text, not UTF-8; convert it first, for example with iconv.")
    if b"\0" in data:
        raise ToolError(f"{path}: is a binary file of {len(data)} bytes, not text.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        guess = _guess(data)
        raise ToolError(
            f"{path}: is not UTF-8 (byte 0x{data[exc.start]:02x} at offset {exc.start}); it looks like "
            f"{guess}. Convert it first, for example with iconv."
        ) from exc


def encode(path: str, text: str) -> bytes:
    """UTF-8 bytes; half a surrogate pair, which has none, is an error."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        code = ord(text[exc.start])
        raise ToolError(f"{path}: the text has U+{code:04X} at {exc.start}, which is no character.") from exc


def _guess(data: bytes) -> str:
    for codec, name in _GUESSES:
        decoder = codecs.getincrementaldecoder(codec)()
        try:
            text = decoder.decode(data[:_LOOKED_AT])
        except UnicodeDecodeError:
            continue
        if any("\u3040" <= letter <= "\u30ff" or "\u4e00" <= letter <= "\u9fff" for letter in text):
            return name
    return "a single-byte encoding such as Latin-1"
