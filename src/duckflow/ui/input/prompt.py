"""The prompt: a line editor that is always shown, with output above it and the status bar below it.

It runs during the whole conversation, so that no key is lost, and appears before the engine is loaded.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DynamicCompleter
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.history import FileHistory
from prompt_toolkit.styles import DynamicStyle, Style

from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.input.keys import bindings
from duckflow.ui.input.layout import ReflowingApplication, make_layout
from duckflow.ui.input.pastes import Pastes
from duckflow.ui.input.picker import Pick, Picker
from duckflow.ui.input.prompt_view import STYLES, Line, styles_of
from duckflow.ui.output.scrollback import Scrollback, open_output

_GRACE_S = 0.05
"""Time in seconds to wait for keys that were pressed but have not arrived."""
_MAX_HISTORY_CHARS = 20_000


class _Lines(FileHistory):
    """History of typed lines, kept across sessions, without very long lines and without secrets."""

    def __init__(self, file: Path, clean: Callable[[str], str]) -> None:
        super().__init__(str(file))
        self._clean = clean

    def store_string(self, string: str) -> None:
        if len(string) <= _MAX_HISTORY_CHARS:
            super().store_string(self._clean(string))


class Prompt(Keyboard):
    """The line editor. It receives every key between `start()` and `stop()`."""

    def __init__(self, history: Path, clean: Callable[[str], str], quiet_s: float) -> None:
        """A question takes the keyboard after a pause in typing of `quiet_s` seconds."""
        super().__init__()
        self._quiet_s = quiet_s
        self.completer: Completer | None = None
        self._question: str | None = None
        self._answered: asyncio.Future[str | None] | None = None
        self._picker: Picker | None = None
        self._pastes = Pastes()
        self._pasting: asyncio.Task[None] | None = None
        self._pressed = 0.0
        self._message = Buffer(
            multiline=True,
            history=_Lines(history, clean),
            completer=DynamicCompleter(lambda: self.completer),
            complete_while_typing=True,
            accept_handler=self._accept,
        )
        self._answer = Buffer(
            multiline=True, accept_handler=self._accept_answer, on_text_changed=self._filter
        )
        self.output = open_output()
        self._style = Style.from_dict(STYLES)
        self._app = ReflowingApplication(
            layout=make_layout(
                self._message,
                self._answer,
                lambda: self._question,
                lambda: self.listener.view(self.size[0]),
                self._listed,
            ),
            style=DynamicStyle(lambda: self._style),
            include_default_pygments_style=False,
            key_bindings=bindings(
                lambda: self.listener,
                self.give_no_answer,
                lambda: self._picker,
                self.paste,
                self.paste_picture,
            ),
            erase_when_done=True,
            min_redraw_interval=0.02,
            output=self.output,
        )
        # Esc must act at once. The bytes of other keys that begin with Esc arrive together.
        self._app.ttimeoutlen, self._app.timeoutlen = 0.1, 0.1
        self._app.key_processor.before_key_press += self._note_key
        self.scrollback = Scrollback(self._app, self.output)
        self._running: asyncio.Future[None] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Current columns and rows of the terminal."""
        size = self.output.get_size()
        return size.columns, size.rows

    def adapt(self, theme: str, *, vi: bool) -> None:
        """Use the colours of a theme, and vi or Emacs keys."""
        self._style = Style.from_dict(styles_of(theme))
        self._app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        if vi:
            self._app.cursor = ModalCursorShapeConfig()
        self.refresh()

    def start(self) -> None:
        """Show the prompt."""
        self._running = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Remove the prompt. Output that was written stays."""
        self.scrollback.finish()
        if self._app.is_running:
            self._app.exit()
        if self._running is not None:
            await self._running

    async def _run(self) -> None:
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            pass  # the terminal has closed
        finally:
            self.left.set()

    def clear(self) -> None:
        """Clear the screen, and draw the prompt at the top."""
        self.scrollback.finish()
        self._app.renderer.clear()
        self.refresh()

    def refresh(self) -> None:
        """Redraw the lines around the prompt."""
        self._app.invalidate()

    async def answer(self, question: str, prefilled: str = "", *, again: bool = False) -> str | None:
        """Return the answer to the question just shown. None for Esc, Ctrl-C and the end of input."""
        if not again:
            await self._quiet()
        return await self._ask(question, prefilled)

    @property
    def picks(self) -> bool:
        """True: a terminal can show a list."""
        return True

    async def pick(self, wanted: Pick) -> str | None:
        """Show the list until the user chooses or leaves it, or a question takes the keyboard."""
        return await self._ask(wanted.question, picker=Picker(wanted.choices))

    async def _ask(self, question: str, prefilled: str = "", picker: Picker | None = None) -> str | None:
        self.give_no_answer()  # a list that is still open
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._answered, self._question, self._picker = answered, question, picker
        self._app.vi_state.reset()
        self._answer.document = Document(prefilled)
        self._app.layout.focus(self._answer)
        self.refresh()
        try:
            return await answered
        finally:
            if self._answered is answered:
                self._question = self._picker = None
                self._answer.reset()
                self._app.layout.focus(self._message)
                self.refresh()

    def give_no_answer(self) -> bool:
        """End the open question without an answer. Return False if no question is open."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)
        return self._question is not None

    def swap_line(self, typed: str) -> str:
        """Replace the text on the input line, and return the old text."""
        before = self._message.text
        self._message.document = Document(typed)
        return before

    async def _quiet(self) -> None:
        await asyncio.sleep(_GRACE_S)
        while (wait := self._pressed + self._quiet_s - time.monotonic()) > 0:  # noqa: ASYNC110 - time itself
            await asyncio.sleep(wait)

    def _note_key(self, _sender: object) -> None:
        self._pressed = time.monotonic()

    def paste(self, pasted: str) -> None:
        """Insert a paste: on the input line by a short name if it is long or a picture file."""
        buffer = self._app.current_buffer
        buffer.insert_text(self._pastes.fold(pasted) if buffer is self._message else pasted)

    def paste_picture(self) -> None:
        """Insert the picture in the clipboard."""
        if self._question is None and (self._pasting is None or self._pasting.done()):
            self._pasting = asyncio.ensure_future(self._paste_picture())

    async def _paste_picture(self) -> None:
        picture = await self.listener.paste_picture()
        if picture is not None:
            self._message.insert_text(self._pastes.add_picture(picture))

    def _accept(self, buffer: Buffer) -> bool:
        named = buffer.text.strip()
        line = self._pastes.unfold(named)
        if pictures := self._pastes.pictures(named):
            self.pictures[line] = pictures
        buffer.text = line  # the history has the whole text
        self._app.vi_state.reset()
        if line and not self.listener.handle_line(line):
            self.inbox.put(line)
        self.refresh()
        return False

    def _accept_answer(self, buffer: Buffer) -> bool:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(self._picker.chosen() if self._picker else buffer.text)
        return True

    def _filter(self, buffer: Buffer) -> None:
        if self._picker is not None:
            self._picker.filter(buffer.text)

    def _listed(self) -> tuple[Line, ...] | None:
        if self._picker is None:
            return None
        return self._picker.lines(self.size[0])
