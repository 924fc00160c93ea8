"""A message from an editor: blocks of text, pictures and mentions of files, as one text and its pictures."""

import base64
import binascii
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from acp import schema

from duckflow.domain.errors import UsageError
from duckflow.ui.transcript import fenced

_NO_SPACE_BEFORE = tuple(",.;:!?)]}'\"、。，．！？）」』")
"""Characters that may follow a mention directly."""


class EditorMessage(NamedTuple):
    """The text, in which files are mentioned with @, and the content of pictures."""

    text: str
    pictures: tuple[bytes, ...]


def read_message(blocks: Iterable[Any], root: Path) -> EditorMessage:
    """Join the blocks of a message. UsageError for audio and broken Base64. `root` is the folder."""
    shown = [*blocks]
    pieces = [piece for block in shown if (piece := _text(block, root))]
    text = ""
    for piece, is_text in pieces:
        apart = text and not text[-1].isspace() and not piece[0].isspace()
        glued = is_text and piece.startswith(_NO_SPACE_BEFORE)
        text += f" {piece}" if apart and not glued else piece
    return EditorMessage(text.strip(), tuple(_pictures(shown)))


def _text(block: object, root: Path) -> tuple[str, bool] | None:
    """Return a block as a piece of the text, and whether the user wrote it; None if it has no text."""
    match block:
        case schema.AudioContentBlock():
            raise UsageError("editors.no_audio")
        case schema.TextContentBlock():
            return (block.text, True) if block.text else None
        case schema.ResourceContentBlock():
            return _mention(block.uri, root), False
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as given):
            return f"\n\n{_path(given.uri, root)}:\n{fenced(given.text, '')}\n\n", False
        case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as given):
            return None if _is_picture(given) else (_mention(given.uri, root), False)
        case _:
            return None


def _pictures(blocks: Iterable[object]) -> Iterator[bytes]:
    for block in blocks:
        match block:
            case schema.ImageContentBlock():
                yield _decoded(block.data)
            case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as given) if (
                _is_picture(given)
            ):
                yield _decoded(given.blob)
            case _:
                pass


def _is_picture(given: schema.BlobResourceContents) -> bool:
    return (given.mime_type or "").startswith("image/")


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as exc:
        raise UsageError("editors.not_base64") from exc


def _mention(uri: str, root: Path) -> str:
    path = _path(uri, root)
    return f'@"{path}"' if any(char.isspace() for char in path) else f"@{path}"


def _path(uri: str, root: Path) -> str:
    """Return the path of a file, relative if it is in the folder, or the address of anything else."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    return str(path.relative_to(root)) if path.is_relative_to(root) and path != root else str(path)
