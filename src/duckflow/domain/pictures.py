"""Pictures by their first bytes: media type and size in pixels, without decoding them."""

import struct

LARGEST = 5_000_000
"""Largest picture, in bytes, that providers accept."""

_FRAMES = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))
"""Markers in a JPEG file behind which its size stands."""


def media_of(data: bytes) -> str | None:
    """Return the media type, which the first bytes tell. None if the data is no picture."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def size_of(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels, None if the header does not tell."""
    try:
        match media_of(data):
            case "image/png":
                return struct.unpack_from(">II", data, 16)
            case "image/gif":
                return struct.unpack_from("<HH", data, 6)
            case "image/jpeg":
                return _jpeg_size(data)
            case _:
                return None
    except struct.error:
        return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        if data[at + 1] in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None
