"""The prompt by itself, as a program on a terminal: what is sent is written above it as Python writes it."""

import asyncio
import sys
from pathlib import Path

from duckflow.ui.frontend import open_frontend
from duckflow.ui.input.keyboard import Listener
from duckflow.ui.input.prompt_view import PromptView
from duckflow.ui.output.writer import Theme


class Barred(Listener):
    """A listener with something to draw."""

    def view(self, columns: int) -> PromptView:
        """A bar and nothing else."""
        return PromptView(bar=([("bar", "[ bar ]")],))


async def main(folder: str, theme: Theme = "auto", keys: str = "emacs") -> None:
    """Echo until Ctrl-D."""
    frontend = open_frontend(lambda: Path(folder) / "history")
    assert frontend.prompt is not None
    frontend.adapt(theme, vi=keys == "vi")
    frontend.prompt.listener = Barred(frontend.prompt.left)
    frontend.prompt.inbox.put("ready")
    while not frontend.keyboard.left.is_set():
        said = await frontend.keyboard.inbox.get()
        frontend.writer.raw(frontend.writer.painted(f"said {said!a}", "yellow"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
