"""The prompt by itself, as a program on a terminal: what is sent is written above it as Python writes it."""

import asyncio
import sys
from pathlib import Path

from duckflow.ui.frontend import open_frontend
from duckflow.ui.input.prompt_view import PromptView
from duckflow.ui.output.colours import Theme, paint


async def main(folder: str, theme: Theme = "auto", keys: str = "emacs") -> None:
    """Echo until Ctrl-D."""
    frontend = open_frontend(lambda: Path(folder) / "history")
    assert frontend.prompt is not None
    frontend.adapt(theme, vi=keys == "vi")
    frontend.prompt.draw = lambda _columns: PromptView(bar=([("bar", "[ bar ]")],))
    frontend.prompt.inbox.put("ready")
    while not frontend.keyboard.left.is_set():
        said = await frontend.keyboard.inbox.get()
        frontend.writer.raw(paint(f"said {said!a}", "yellow"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
