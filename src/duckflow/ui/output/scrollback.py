"""Writes output above the prompt, in slices, so that keys are read in between."""

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

_SLICE_CHARS = 16_384
_MAX_RENDER_S = 0.01
_PAUSE_S = 0.015
"""Pause in seconds before each slice, so that texts which arrive together are drawn together."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Codes between which a terminal draws everything at once. Terminals that do not know them ignore them."""


class SynchronizedOutput(Vt100_Output):
    """Output to the terminal that can be held back until a change is complete."""

    held = 0

    def flush(self) -> None:
        """Write the output, unless it is being held back."""
        if not self.held:
            super().flush()

    def erase_down(self) -> None:
        """Erase the line, then everything below. In one step, tmux would keep the prompt in its history."""
        self.write_raw("\x1b7\x1b[K\x1b[B\x1b[J\x1b8")

    @contextmanager
    def in_one_piece(self) -> Generator[None]:
        """Send everything that the block writes to the terminal together."""
        self.held += 1
        self.write_raw(_BEGIN)
        try:
            yield
        finally:
            self.write_raw(_END)
            self.held -= 1
            self.flush()


def open_output() -> SynchronizedOutput:
    """Return standard output, which must be a terminal."""
    plain = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else ColorDepth.from_env()
    output = SynchronizedOutput.from_pty(sys.stdout, os.environ.get("TERM"), plain)
    assert isinstance(output, SynchronizedOutput)
    # Asking the terminal for the cursor position takes a round trip over ssh, and the layout can do without.
    output.enable_cpr = False
    return output


class Scrollback:
    """Output above the prompt, which stays in the terminal's history."""

    def __init__(self, app: Application[Any], output: SynchronizedOutput) -> None:
        self._app = app
        self._output = output
        self._pending: deque[Iterator[str]] = deque()
        self._flushing: asyncio.TimerHandle | None = None

    def write(self, texts: Iterable[str]) -> None:
        """Write texts in order, each on new lines. A text is computed only when it is written."""
        self._pending.append(iter(texts))
        if not self._app.is_running:
            self.finish()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_PAUSE_S, self._flush)

    def finish(self) -> None:
        """Write all pending texts now."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        while self._pending:
            self._draw(self._taken())
        sys.stdout.flush()

    def _flush(self) -> None:
        self._flushing = None
        self._draw(self._taken())
        if self._pending:
            self._flushing = asyncio.get_running_loop().call_later(_PAUSE_S, self._flush)

    def _taken(self) -> str:
        taken: list[str] = []
        room, until = _SLICE_CHARS, time.monotonic() + _MAX_RENDER_S
        while self._pending and room > 0 and time.monotonic() < until:
            text = next(self._pending[0], None)
            if text is None:
                self._pending.popleft()
            elif len(text) > _SLICE_CHARS and "\n" in text.rstrip("\n"):
                self._pending.appendleft(_sliced(text))
            else:
                taken.append(text)
                room -= len(text)
        return "".join(text if text.endswith("\n") else f"{text}\n" for text in taken)

    def _draw(self, lines: str) -> None:
        context = self._app.context
        if not lines:
            self._app.invalidate()  # redraw, because the lines around the prompt may have changed
            return
        with self._output.in_one_piece():
            running = self._app.is_running and context is not None
            if running:
                self._app.renderer.erase()
            self._output.write_raw(lines.replace("\n", "\r\n"))
            if running and context is not None:
                self._app.render_counter += 1  # prompt_toolkit caches drawings by this number
                context.copy().run(self._app.renderer.render, self._app, self._app.layout)
                self._app.layout.update_parents_relations()


def _sliced(text: str) -> Iterator[str]:
    """Yield slices of whole lines. A line longer than a slice is not split, so that it can be copied."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + _SLICE_CHARS) + 1 or text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
