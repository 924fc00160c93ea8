"""Pictures that messages mention or bring along. They are read again for each prompt.

A mentioned file is left out once it has changed. Pasted pictures are in the database of kept files.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

from duckflow.domain.errors import ProviderError, ToolError, UsageError
from duckflow.domain.events import ErrorReported
from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage, ModelClient, ModelPiece, ModelRequest, Picture
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.pictures import LARGEST, media_of
from duckflow.llm.streams import closing
from duckflow.llm.wire.errors import REFUSED
from duckflow.llm.wrapping_client import WrappingClient
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import KeptFiles

ALL_TOGETHER = 20_000_000
"""Largest total size, in bytes, of the pictures in a prompt. The newest pictures come first."""
MOST = 8
"""Largest number of pictures in one message."""

_MENTION = lazy_regex(r'(?<![\w@])@(?:"([^"\n]{1,1000})"|(\S{1,1000}))')
_NAMED = lazy_regex(r".+?\.(?:png|jpe?g|gif|webp)(?![a-z0-9_.-])", re.IGNORECASE)
_ABOUT_PICTURES = lazy_regex(r"(?i)image|picture")
_AFTER = ",.;:!?)]}'\"、。，．！？）」』"


def find_pictures(text: str, workspace: Workspace) -> tuple[tuple[Picture, ...], tuple[ErrorReported, ...]]:
    """Return the pictures that a message mentions, and notices about those that can't be shown. Blocking."""
    found: dict[str, Picture] = {}
    problems: list[ErrorReported] = []
    for quoted, word in _MENTION.findall(text):
        seen = _look(workspace, _path(workspace, quoted or word))
        if isinstance(seen, ErrorReported):
            problems.append(seen)
        elif seen is not None and seen.path not in found:
            if len(found) == MOST:
                problems.append(_report("too_many", seen.path, most=MOST))
                break
            found[seen.path] = seen
    return tuple(found.values()), tuple(problems)


def _report(what: str, path: str, **values: str | int) -> ErrorReported:
    return ErrorReported(key=f"pictures.{what}", values={"path": path, **values}, notice=True)


def _path(workspace: Workspace, word: str) -> str:
    """Return the file that a mention names. Japanese text may follow the name without a space."""
    named = _NAMED.match(word)
    for path in dict.fromkeys((word, word.rstrip(_AFTER), named.group() if named else word)):
        try:
            if workspace.status(path) is not None:
                return path
        except ToolError:
            continue
    return named.group() if named else word


def _look(workspace: Workspace, path: str) -> Picture | ErrorReported | None:
    named = _NAMED.fullmatch(path) is not None
    try:
        status = workspace.status(path)
        if named and status is not None and status.size > LARGEST:
            return _report("too_large", path, most=LARGEST // 1_000_000)
        data = workspace.read_bytes(path, cap=LARGEST)
    except ToolError as error:
        return _report("unreadable", path, reason=str(error)) if named else None
    media = media_of(data)
    if media is None:
        return _report("none", path) if named else None
    return Picture(path=workspace.relative(path), media=media, digest=hashlib.sha256(data).hexdigest())


def keep_pictures(pictures: Sequence[bytes], session_id: str, kept: KeptFiles) -> tuple[Picture, ...]:
    """Keep pasted pictures for a message. UsageError if one can't be shown. Blocking."""
    names = [f"picture-{number}" for number in range(1, len(pictures) + 1)]
    if len(pictures) > MOST:
        raise UsageError("pictures.too_many", path=names[MOST], most=MOST)
    found: list[Picture] = []
    for name, data in zip(names, pictures, strict=True):
        media = media_of(data)
        if media is None:
            raise UsageError("pictures.not_pasted", path=name)
        if len(data) > LARGEST:
            raise UsageError("pictures.too_large", path=name, most=LARGEST // 1_000_000)
        found.append(Picture(path=name, media=media, digest=kept.keep_picture(session_id, data)))
    return tuple(found)


class PictureClient(WrappingClient):
    """Model client that adds the pictures which messages mention or bring along."""

    def __init__(self, client: ModelClient, workspace: Workspace, kept: KeptFiles) -> None:
        super().__init__(client)
        self._workspace = workspace
        self._kept = kept
        self._accepted: set[str] = set()
        self._refused: set[str] = set()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Stream the answer to the request with its pictures."""
        if not any(message.pictures for message in request.messages):
            return self.inner.stream(request)
        return self._seen(request)

    async def _seen(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the answer. If the provider refuses a picture, ask again without it.

        Otherwise it would refuse all later requests, too, because a picture stays in the conversation.
        """
        data: dict[str, str] = {}
        try:
            async with closing(self._with_pictures(request, data)) as pieces:
                async for piece in pieces:
                    self._accepted |= data.keys()
                    yield piece
        except ProviderError as error:
            new = data.keys() - self._accepted
            if error.key != REFUSED or not new or not _ABOUT_PICTURES.search(str(error)):
                raise
            self._refused |= new
            async with closing(self._with_pictures(request, {})) as pieces:
                async for piece in pieces:
                    yield piece

    async def _with_pictures(self, request: ModelRequest, data: dict[str, str]) -> AsyncGenerator[ModelPiece]:
        messages = await asyncio.to_thread(lambda: tuple(self._read(request.messages, data))[::-1])
        shown = replace(request, messages=messages, picture_data=data)
        async with closing(self.inner.stream(shown)) as pieces:
            async for piece in pieces:
                yield piece

    def _read(self, messages: tuple[ChatMessage, ...], read: dict[str, str]) -> Iterator[ChatMessage]:
        """Yield the messages with their pictures, newest first. Put the pictures' data into `read`."""
        room = ALL_TOGETHER
        for message in reversed(messages):
            shown: list[Picture] = []
            notes: list[str] = []
            for picture in message.pictures:
                data = self._bytes(picture, room)
                if isinstance(data, str):
                    notes.append(f"[The picture {picture.path} is not shown: {data}]")
                else:
                    room -= len(data)
                    shown.append(picture)
                    read[picture.digest] = base64.b64encode(data).decode("ascii")
            text = "\n\n".join((message.text, *notes))
            yield replace(message, text=text, pictures=tuple(shown)) if message.pictures else message

    def _bytes(self, picture: Picture, room: int) -> bytes | str:
        if not self.traits.sees:
            return "you can't see pictures. Say so if it matters."
        if picture.digest in self._refused:
            return "your provider refused it. It may be damaged or too large; a copy may help."
        data = self._kept.picture(picture.digest)
        if data is None:
            try:
                data = self._workspace.read_bytes(picture.path, cap=LARGEST)
            except ToolError as error:
                return str(error)
        if hashlib.sha256(data).hexdigest() != picture.digest:
            return "the file has changed since. The user can mention it again."
        return data if len(data) <= room else "newer ones take the room. The user can mention it again."
