"""Lets the user change a text before it is used: in an editor, or on the input line if none is set."""

import asyncio
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from duckflow.domain.files.programs import find_program
from duckflow.i18n.catalogue import text
from duckflow.ui.input.keyboard import Keyboard

_EDITORS = ("VISUAL", "EDITOR")


def find_editor(root: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that start the user's editor; empty if none is set or it lies in the workspace."""
    words = shlex.split(next((env[name] for name in _EDITORS if env.get(name)), ""))
    program = find_program(words[0], root, env) if words else None
    return (program, *words[1:]) if program else ()


class TextEditor:
    """Lets the user change a text, in the given editor or on the input line."""

    def __init__(
        self, keyboard: Keyboard, editor: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._keyboard = keyboard
        self._editor = editor
        self._environment = environment

    async def edit(self, content: str, name: str) -> str | None:
        """Return the text after the user changed it; None if they did not. `name` is the file it is for."""
        if self._editor:
            edited = await self._run_editor(content, name)
        else:
            edited = await self._keyboard.answer(text("approval.edit"), content)
        return None if edited == content else edited

    async def _run_editor(self, content: str, name: str) -> str | None:
        from prompt_toolkit.application import in_terminal  # noqa: PLC0415 - only a terminal has an editor

        with tempfile.TemporaryDirectory(prefix="duckflow-") as folder:
            file = Path(folder) / (Path(name).name or "text")
            file.write_text(content, "utf-8")
            async with in_terminal():
                running = await asyncio.create_subprocess_exec(
                    *self._editor, str(file), cwd=folder, env=self._environment
                )
                try:
                    failed = await running.wait()
                except asyncio.CancelledError:  # the question was answered in another window
                    running.terminate()
                    await running.wait()
                    raise
            return None if failed else file.read_text("utf-8")
