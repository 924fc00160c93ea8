"""What `duckflow` does: the conversation. The prompt comes first; all that is slow is loaded behind it."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from duckflow.cli.chat.start import ConversationStart
from duckflow.cli.secrets import without_secrets
from duckflow.config.places import state_dir
from duckflow.ui.frontend import Frontend, open_frontend

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import ModuleType

HISTORY = "history"


def converse(start: ConversationStart) -> None:
    """Talk until the user leaves."""
    asyncio.run(_converse(start))


async def _converse(start: ConversationStart) -> None:
    front = open_frontend(lambda: state_dir() / HISTORY, without_secrets)
    try:
        engine = await _unless_left(front, asyncio.to_thread(import_module, "duckflow.cli.chat.conversation"))
        if engine is not None:
            await engine.converse(start, front)
    finally:
        await front.close()


async def _unless_left(front: Frontend, loading: "Coroutine[None, None, ModuleType]") -> "ModuleType | None":
    """What was loaded; None where the user did not wait for it."""
    loaded = asyncio.ensure_future(loading)
    left = asyncio.ensure_future(front.left.wait())
    await asyncio.wait({loaded, left}, return_when=asyncio.FIRST_COMPLETED)
    left.cancel()
    return loaded.result() if loaded.done() else None
