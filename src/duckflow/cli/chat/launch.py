"""Start of the conversation: shows the prompt at once, and loads slow modules in the background."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from duckflow.cli.plain_flags import ConversationOptions
from duckflow.cli.secrets import without_secrets
from duckflow.config.places import state_dir
from duckflow.ui.frontend import Frontend, open_frontend

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import ModuleType

HISTORY = "history"


def launch(options: ConversationOptions) -> None:
    """Run the conversation until the user leaves."""
    asyncio.run(_launch("converse", options))


def attach(session: str) -> None:
    """Show a session of another process until the user leaves."""
    asyncio.run(_launch("attach", session))


async def _launch(work: str, wanted: ConversationOptions | str) -> None:
    frontend = open_frontend(lambda: state_dir() / HISTORY, without_secrets)
    try:
        loading = asyncio.to_thread(import_module, "duckflow.cli.chat.conversation")
        conversation = await _unless_left(frontend, loading)
        if conversation is not None:
            await getattr(conversation, work)(wanted, frontend)
    finally:
        await frontend.keyboard.stop()


async def _unless_left(
    frontend: Frontend, loading: "Coroutine[None, None, ModuleType]"
) -> "ModuleType | None":
    """Return the module; None if the user left before it was loaded."""
    loaded = asyncio.ensure_future(loading)
    left = asyncio.ensure_future(frontend.keyboard.left.wait())
    await asyncio.wait({loaded, left}, return_when=asyncio.FIRST_COMPLETED)
    left.cancel()
    return loaded.result() if loaded.done() else None
