"""The prompt by itself, as a program on a terminal: what is sent is written above it as Python writes it."""

import asyncio
import sys
from pathlib import Path

from duckflow.ui.frontend import open_frontend
from duckflow.ui.views.prompt_view import View


async def main(folder: str) -> None:
    """Echo until Ctrl-D."""
    front = open_frontend(lambda: Path(folder) / "history")
    assert front.prompt is not None
    front.prompt.look = lambda _columns: View(bar=([("bar", "[ bar ]")],))
    front.prompt.inbox.put("ready")
    while not front.left.is_set():
        said = await front.keyboard.inbox.get()
        front.paper.raw(f"said {said!a}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
