"""Start of the conversation: shows the prompt at once, and loads slow modules in the background."""

import asyncio
from importlib import import_module

from duckflow.cli.plain_flags import ConversationOptions
from duckflow.cli.secrets import without_secrets
from duckflow.config.places import state_dir
from duckflow.ui.frontend import open_frontend

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
        module = asyncio.to_thread(import_module, "duckflow.cli.chat.conversation")
        loading = asyncio.ensure_future(module)
        left = asyncio.ensure_future(frontend.keyboard.left.wait())
        await asyncio.wait({loading, left}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if loading.done():  # otherwise the user left before it was loaded
            await getattr(loading.result(), work)(wanted, frontend)
    finally:
        frontend.entitle("")
        await frontend.keyboard.stop()
