"""The first look: the files there are, and for a small model those its user named (see `small_models.py`)."""

from collections.abc import Sequence

from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.thinking.model import ModelInUse
from duckflow.loops.thinking.small_models import WorkspaceLook, reads_of_named


class FirstLook:
    """Looks before the model is asked for the first time."""

    def __init__(self, look: WorkspaceLook, dispatcher: Dispatcher, model: ModelInUse) -> None:
        self._look = look
        self._dispatcher = dispatcher
        self._model = model

    async def files(self) -> Sequence[str]:
        """The files there are."""
        return await self._look.files()

    async def read_named(self, text: str, files: Sequence[str]) -> None:
        """A small model does not have to ask for the files the user named."""
        if (await self._model.traits()).small:
            await self._dispatcher.run_now(reads_of_named(text, files))
