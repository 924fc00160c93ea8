"""Changing a text before it is used: in the user's editor, or on the line where none is set."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from duckflow.ui.input.keyboard import Keyboard

_EDITORS = ("VISUAL", "EDITOR")
Edit = Callable[[str, str], Awaitable[str | None]]
"""Lets the user change a text, for a file of this name; None where they did not."""


def editor_command() -> list[str]:
    """The user's editor, if one is set."""
    return shlex.split(next((os.environ[name] for name in _EDITORS if os.environ.get(name)), ""))


async def edit_text(content: str, name: str) -> str | None:
    """What the user's editor makes of a text; the terminal is the editor's meanwhile."""
    from prompt_toolkit.application import in_terminal  # noqa: PLC0415 - only a terminal has an editor

    with tempfile.TemporaryDirectory(prefix="duckflow-") as folder:
        file = Path(folder) / (Path(name).name or "text")
        file.write_text(content, "utf-8")
        async with in_terminal():
            editor = await asyncio.create_subprocess_exec(*editor_command(), str(file))
            failed = await editor.wait()
        edited = file.read_text("utf-8")
    return None if failed or edited == content else edited


def edit_on_line(keyboard: Keyboard, prompt: str) -> Edit:
    """Editing on the line itself, for those who have set no editor."""

    async def edit(content: str, name: str) -> str | None:
        del name
        edited = await keyboard.answer(prompt, content)
        return None if edited is None or edited == content else edited

    return edit
