"""Writing above the prompt while somebody types: in slices, so that keys are read in between."""

import asyncio
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from prompt_toolkit.application import Application

from duckflow.ui.output.synchronized import SynchronizedOutput

_SLICE = 16_384
"""Characters written at a time."""
_WORK_S = 0.01
"""Time spent at most on making them, where making takes time."""
_PAUSE_S = 0.015
"""Between two slices, and before the first, so that what comes together is drawn together."""


class Scrollback:
    """What is written here scrolls by above the prompt, and stays in the terminal's own history."""

    def __init__(self, app: Application[Any], output: SynchronizedOutput) -> None:
        self._app = app
        self._output = output
        self._pending: deque[Iterator[str]] = deque()
        self._flushing: asyncio.TimerHandle | None = None

    def write(self, texts: Iterable[str]) -> None:
        """Write texts, each on lines of its own, in order; each is made when its turn comes."""
        self._pending.append(iter(texts))
        if not self._app.is_running:
            self.finish()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_PAUSE_S, self._flush)

    def finish(self) -> None:
        """Write all that waits, now."""
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
        room, until = _SLICE, time.monotonic() + _WORK_S
        while self._pending and room > 0 and time.monotonic() < until:
            text = next(self._pending[0], None)
            if text is None:
                self._pending.popleft()
            elif len(text) > _SLICE:
                self._pending.appendleft(_sliced(text))
            else:
                taken.append(text)
                room -= len(text)
        return "".join(text if text.endswith("\n") else f"{text}\n" for text in taken)

    def _draw(self, lines: str) -> None:
        context = self._app.context
        if not lines:
            self._app.invalidate()  # what was made of nothing may have changed what is around the prompt
            return
        with self._output.in_one_piece():
            running = self._app.is_running and context is not None
            if running:
                self._app.renderer.erase()
            self._output.write_raw(lines.replace("\n", "\r\n"))
            if running and context is not None:
                self._app.render_counter += 1  # what was drawn before is remembered by this number
                context.copy().run(self._app.renderer.render, self._app, self._app.layout)
                self._app.layout.update_parents_relations()


def _sliced(text: str) -> Iterator[str]:
    """A long text in slices that end where a line ends, if one does."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + _SLICE) + 1 or start + _SLICE
        yield text[start:end]
        start = end
