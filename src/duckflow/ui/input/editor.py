"""Changing a text before it is used: in the user's editor, or on the line if none is set."""

import asyncio
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from duckflow.domain.files.programs import find_program
from duckflow.ui.input.keyboard import Keyboard

_EDITORS = ("VISUAL", "EDITOR")
Edit = Callable[[str, str], Awaitable[str | None]]
"""Lets the user change a text, for a file of this name; None if they did not."""


def find_editor(root: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """The user's editor with its options, if one is set that nothing in the workspace can have made."""
    words = shlex.split(next((env[name] for name in _EDITORS if env.get(name)), ""))
    program = find_program(words[0], root, env) if words else None
    return (program, *words[1:]) if program else ()


def edit_with(editor: tuple[str, ...], environment: Mapping[str, str]) -> Edit:
    """Editing in the user's editor; the terminal is the editor's meanwhile."""

    async def edit(content: str, name: str) -> str | None:
        from prompt_toolkit.application import in_terminal  # noqa: PLC0415 - only a terminal has an editor

        with tempfile.TemporaryDirectory(prefix="duckflow-") as folder:
            file = Path(folder) / (Path(name).name or "text")
            file.write_text(content, "utf-8")
            async with in_terminal():
                running = await asyncio.create_subprocess_exec(
                    *editor, str(file), cwd=folder, env=environment
                )
                try:
                    failed = await running.wait()
                except asyncio.CancelledError:  # somebody else has answered
                    running.terminate()
                    await running.wait()
                    raise
            edited = file.read_text("utf-8")
        return None if failed or edited == content else edited

    return edit


def edit_on_line(keyboard: Keyboard, prompt: str) -> Edit:
    """Editing on the line itself, for those who have set no editor."""

    async def edit(content: str, name: str) -> str | None:
        del name
        edited = await keyboard.answer(prompt, content)
        return None if edited is None or edited == content else edited

    return edit
