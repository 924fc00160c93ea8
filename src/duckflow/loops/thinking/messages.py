"""Prepares a user's message: adds notes from hooks and about the folder, and reads mentioned items."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from duckflow.domain.commands import RunShellCommand
from duckflow.domain.events import ErrorReported, UserMessage
from duckflow.domain.model import Picture
from duckflow.i18n.answers import is_go_on
from duckflow.i18n.catalogue import text
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.session import SessionPart
from duckflow.loops.thinking.files_note import read_files_note
from duckflow.loops.thinking.model import DecisionModel
from duckflow.loops.thinking.pictures import find_pictures
from duckflow.loops.thinking.small_models import WorkspaceLook
from duckflow.safety.files.workspace import Workspace


@dataclass(eq=False)
class MessageReader(SessionPart):
    """Prepares messages for the model of a session."""

    _hooks: Hooks
    _workspace: Workspace
    _look: WorkspaceLook
    _model: DecisionModel
    _dispatcher: Dispatcher

    async def read(
        self, said: str, request_id: str, pasted: Sequence[Picture] = ()
    ) -> tuple[UserMessage, tuple[ErrorReported, ...]] | None:
        """Return the message with notes and pictures, and problems with these. None if a hook refuses it."""
        added = await self._hooks.submitted(said)
        if added is None:
            return None
        note = await asyncio.to_thread(read_files_note, self._workspace)
        if note == self._state.files_note:
            note = ""
        mentioned, problems = await asyncio.to_thread(find_pictures, said, self._workspace)
        pictures = (*pasted, *mentioned)
        if pasted and not said.strip():
            said = text("pictures.alone")
        request = self._state.request
        resumes = request is not None and request.request_id == request_id and is_go_on(said)
        message = UserMessage(
            request_id=request_id, text=said, note=note, added=added, pictures=pictures, resumes=resumes
        )
        return message, problems

    async def hear(self, request_id: str) -> AsyncIterator[tuple[UserMessage, *tuple[ErrorReported, ...]]]:
        """Yield the messages typed during the work, and run the commands between them, in order (C6)."""
        unheard = self._session.unheard
        while unheard:
            typed = unheard[0]
            if isinstance(typed, RunShellCommand):
                unheard.remove(typed)
                await self._dispatcher.run_typed(typed.command)
                continue
            read = await self.read(typed.text, request_id, typed.pictures)
            unheard.remove(typed)
            if read is not None:
                yield read[0], *read[1]

    async def look_ahead(self, said: UserMessage) -> None:
        """Read @-mentioned items, for a small model also named files. Warn if it can't see pictures."""
        await self._dispatcher.look_at_mentions(said.text)
        traits = await self._model.traits()
        if said.pictures and not traits.sees:
            paths = ", ".join(picture.path for picture in said.pictures)
            self._session.notify("pictures.not_seen", model=traits.name, paths=paths)
        if traits.small:
            await self._dispatcher.run_now(await self._look.look_first(self._state, said.text))
