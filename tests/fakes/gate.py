"""A scripted answer that comes when the test says so, not after a time."""

import asyncio
import json
from pathlib import Path
from typing import Any


class Gate:
    """`gate.hold(decision("Here."))` is a line of a script; it is answered after `gate.open()`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def hold(self, text: str | dict[str, Any], output: str = "Decision") -> dict[str, Any]:
        """A line for a script that waits here."""
        written = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        return {"for": output, "text": written, "gate": str(self._folder)}

    def asked(self) -> bool:
        """Whether the model has been asked for it."""
        return (self._folder / "asked").exists()

    async def wait_until_asked(self) -> None:
        """Come back when the model has been asked for it."""
        while not self.asked():
            await asyncio.sleep(0.01)

    def open(self) -> None:
        """Let the answer come."""
        (self._folder / "go").touch()
