"""One terminal window on a session: sends what the user types, shows events, and asks open questions.

The first window runs the session in its own process. A second window (M7) is a guest: it sends every line to
that process at once, and shows its own messages when their events arrive.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from duckflow.domain import commands
from duckflow.domain.commands import SessionCommand, hash_of
from duckflow.domain.events import (
    ApprovalRequested,
    ConsultationRequested,
    RequestFinished,
    StoredEvent,
    TaskReported,
    UserMessage,
)
from duckflow.domain.habits import habit_of
from duckflow.domain.modes import MODES
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.session_client import SessionClient, SessionUpdate, StatusChanged
from duckflow.i18n.answers import is_stop
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import (
    CommandContext,
    carry_out,
    dispatch_command,
    dispatch_in_turn,
    errors_shown,
    follow_habit,
    must_wait,
    name_command,
)
from duckflow.ui.commands.pickers import pick_for
from duckflow.ui.commands.table import (
    SHELL_SIGNS,
    TypedCommand,
    find_command,
    find_custom,
    read_command,
    read_prompt,
)
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.editor import TextEditor
from duckflow.ui.input.keyboard import Listener
from duckflow.ui.input.pastes import read_clipboard
from duckflow.ui.input.picker import Pick
from duckflow.ui.input.prompt_view import PromptView
from duckflow.ui.output.escaping import visible
from duckflow.ui.questions import Questions
from duckflow.ui.screen import FOREIGN, Screen
from duckflow.ui.views.live.status_bar import bar_lines

_NOTIFY_AFTER_S = 5.0
_TICK_S = 0.25
_DOUBLE_PRESS_S = 2.0


class Conversation(Listener):
    """A terminal window on a session."""

    def __init__(
        self,
        client: SessionClient,
        frontend: Frontend,
        screen: Screen,
        editor: TextEditor,
        *,
        guest: bool = False,
    ) -> None:
        super().__init__(frontend.keyboard.left)
        self._client = client
        self._frontend = frontend
        self._writer, self._keyboard = frontend.writer, frontend.keyboard
        self._screen = screen
        self._guest = guest
        self._exit: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._context = CommandContext(
            client, frontend.writer, screen, self._leave_for, guest=guest, keyboard=frontend.keyboard
        )
        self._questions = Questions(self._context, frontend.keyboard, editor)
        self._seen = asyncio.Event()
        self._called = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        self._busy = False
        self._began = 0.0
        self._own: str | None = None
        """Line typed in this window that is being carried out; empty for an answer, None for nothing."""
        self._echoed = False
        """True if that line is shown already, so that its event shows nothing."""
        self._undos = 0
        """Number of undos typed during work whose result this window shows itself."""
        self._restored: list[str] = []
        """Lines that a stop has put back, one after the other onto the input line."""
        self._labels: dict[str, str] = {}
        """Words in which lines chosen from a list are shown."""
        self._left_open = ""
        self._pressed = self._escaped = -_DOUBLE_PRESS_S
        frontend.keyboard.listener = self
        frontend.attach(client)

    async def run(self, updates: AsyncIterator[SessionUpdate]) -> str | None:
        """Run until the user leaves or the session ends. Return the session to open next, if any."""
        parts = (self._talk(), self._keyboard.left.wait(), self._follow(updates), self._tick())
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(one) for one in parts]
        try:
            await asyncio.wait({*tasks, self._exit}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*tasks, *self._sending):
                task.cancel()
            await asyncio.gather(*tasks, *self._sending, return_exceptions=True)
        for task in tasks:
            if not task.cancelled():
                task.result()
        return self._exit.result() if self._exit.done() else None

    async def _follow(self, updates: AsyncIterator[SessionUpdate]) -> None:
        async for update in updates:
            self._show(update)
            self._seen.set()
            self._keyboard.refresh()
        if self._guest:
            self._writer.line(text("attach.left", session=self._client.state.session_id), "yellow")

    def _show(self, update: SessionUpdate) -> None:
        own, said_here = None if self._guest else self._own, False
        if isinstance(update, StoredEvent) and isinstance(update.event, UserMessage):
            said_here, self._echoed = self._echoed, False
            own = own if said_here else None
        match update:
            case StoredEvent(event=UserMessage(text=said)) if own and read_prompt(own):
                self._writer.line(visible(said), "dim")
            case _:
                foreign = ("message",) if self._undos else FOREIGN
                self._screen.also = foreign if own is None else ()
                self._screen(update)
        match update:
            case StatusChanged(busy=busy):
                long = time.monotonic() - self._began > _NOTIFY_AFTER_S
                if busy and not self._busy:
                    self._began = time.monotonic()
                elif self._busy and not busy and long and self._client.state.question is None:
                    self._frontend.notify(text("notice.done"))
                ended, self._busy = self._busy and not busy, busy
                if not self._guest or not ended:
                    return
                self._left_open = ""  # a question is still open if the model has replied to a remark about it
            case StoredEvent(event=RequestFinished()):
                self._began = time.monotonic()  # the next message has its own time
                return
            case StoredEvent(event=ApprovalRequested() | ConsultationRequested() | TaskReported()):
                self._left_open = ""
            case _:
                return
        self._called.set()

    async def _tick(self) -> None:
        while True:
            self._entitle()
            await asyncio.sleep(_TICK_S)
            if self._busy:
                self._keyboard.refresh()

    def _entitle(self) -> None:
        """Show in the terminal's title whether Duckflow works, waits for an answer, or is done."""
        state = self._client.state
        sign = "❓" if state.question is not None else "⏳" if self._busy else "🦆"
        self._frontend.entitle(f"{sign} {Path(state.workspace).name}")

    async def _until(self, met: Callable[[], bool]) -> None:
        while not met():
            self._seen.clear()
            await self._seen.wait()

    async def _rest(self) -> None:
        """Wait until the work has ended and is shown. For a guest, the other process queues the lines."""
        await self._until(lambda: self._guest or not (self._busy or self._client.busy))

    async def _talk(self) -> None:
        try:
            while True:
                await self._settle_questions()
                line = await self._next()
                if line and self._guest:
                    self._start(self._take(line))
                elif line:
                    await self._take(line)
        except EOFError:
            return

    async def _next(self) -> str | None:
        """Return the next line. None if the caller should first look for an open question."""
        line = asyncio.ensure_future(self._keyboard.inbox.get())
        called = asyncio.ensure_future(self._called.wait())
        try:
            await asyncio.wait({line, called}, return_when=asyncio.FIRST_COMPLETED)
            if self._guest and line.done() and line.exception():
                await called  # there is no more input, but a guest can still watch
                return None
            return line.result() if line.done() else None
        finally:
            self._called.clear()
            line.cancel()
            called.cancel()

    async def _take(self, line: str) -> None:
        await self._rest()
        self._own = line
        try:
            await self._do(line)
            await self._rest()
        finally:
            self._own, self._echoed = None, False

    async def _do(self, line: str) -> None:
        custom = find_custom(line, self._client.extensions.commands)
        typed = read_command(line) if custom is None else None
        shell = custom is None and typed is None and line.startswith(SHELL_SIGNS)
        if typed or shell or not self._guest:
            self._echo(line)
        if custom is None and (follow_habit(self._context, line) or name_command(self._context, line)):
            return
        if typed is not None:
            await dispatch_in_turn(self._context, typed)
        elif not shell:
            self._echoed = not self._guest
            with errors_shown(self._writer):
                await carry_out(self._context, self._message(line))
        elif command := line[1:].strip():
            await self._carry_out(commands.RunShellCommand(command=command))

    async def _carry_out(self, command: SessionCommand) -> None:
        with errors_shown(self._writer):
            await carry_out(self._context, command)

    async def _settle_questions(self) -> None:
        while True:
            await self._rest()
            self._own = None
            asked = self._client.state.question
            if asked is None or hash_of(asked) == self._left_open:
                return
            self._frontend.notify(text("notice.question"))
            answer = await self._answered(asked)
            if answer is not None:
                self._own = ""
                await self._carry_out(answer)
            if self._guest or (answer is None and self._client.state.question == asked):
                self._left_open = hash_of(asked)  # a guest sees the effect of its answer later

    async def _answered(self, asked: Approval | Consultation) -> SessionCommand | None:
        """Return the answer given in this window. None without an answer, or if another window was faster."""
        self._own = ""
        self._screen.hold_notices()
        here = asyncio.ensure_future(self._ask(asked))
        gone = asyncio.ensure_future(self._until(lambda: self._client.state.question != asked))
        try:
            await asyncio.wait({here, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                return here.result()
            self._writer.line(text("clients.answered"), "dim")
            return None
        finally:
            self._own = None
            here.cancel()
            gone.cancel()
            await asyncio.gather(here, gone, return_exceptions=True)
            self._screen.release_notices()

    async def _ask(self, asked: Approval | Consultation) -> SessionCommand | None:
        shown = hash_of(asked)
        if isinstance(asked, Consultation):
            if (way := await self._questions.consult(asked)) is not None:
                return commands.ChooseShown(question_hash=shown, way=way)
        else:
            proposed = await self._client.proposal() if asked.editable else None
            answer = await self._questions.approve(asked, proposed)
            if isinstance(answer, str):
                return commands.SayMessage(text=answer)
            if answer is not None:
                return commands.AnswerShown(question_hash=shown, answer=answer)
            if not self._guest:
                return commands.DeclineAndStop(question_hash=shown)
        if self._guest:
            self._writer.line(text("attach.open"), "dim")
        return None

    def view(self, columns: int) -> PromptView:
        """Return the lines above the prompt, and the status bar below it."""
        state = self._client.state
        queued = (*self._client.waiting, *self._keyboard.inbox, *self._restored)
        activity = self._screen.activity.lines(state, queued, columns)
        busy_s = time.monotonic() - self._began if self._busy else None
        return PromptView(activity, bar_lines(state, self._client.status, columns, busy_s))

    def handle_line(self, line: str) -> bool:
        """Run a slash command if it need not wait, and send a message to the current work (C6).

        Return False for every other line, which waits until the work has ended.
        """
        self._pressed = -_DOUBLE_PRESS_S  # a user who types a line does not want to leave
        asyncio.get_running_loop().call_soon(self._restore)
        if self._pick(line):
            return True
        if habit_of(line):
            self._screen.said(line)
            return follow_habit(self._context, line)
        typed = read_command(line)
        if find_custom(line, self._client.extensions.commands) is not None:
            return False
        if typed is None:
            return self._steer(line)
        command = find_command(typed.name)
        if command is not None and must_wait(self._context, command):
            if command.name != "undo" or self._guest or not self._client.busy:
                return False
            self._echo(line)
            self._start(self._undo_later(typed))  # at once, because it is meant for the current state
            return True
        self._echo(line)
        work = dispatch_command(self._context, typed)
        if work is not None:
            self._start(self._finish(work))
        return True

    def _pick(self, line: str) -> bool:
        """Open the list of a command. Return False for a command without one."""
        custom = find_custom(line, self._client.extensions.commands)
        if not self._keyboard.picks or custom is not None or (pick := pick_for(self._client, line)) is None:
            return False
        self._start(self._choose(pick))
        return True

    async def _choose(self, pick: Pick) -> None:
        line = await self._keyboard.pick(pick)
        if line is None or self._pick(line):
            return
        chosen = next(one for one in pick.choices if one.line == line)
        self._labels[line] = f"{line.partition(' ')[0]} {chosen.shown}"
        if not self.handle_line(line):
            self._keyboard.inbox.put(line)

    def _echo(self, line: str) -> None:
        """Show a typed line. An entry chosen from a list appears in its own words, without ids."""
        self._screen.said(self._labels.pop(line, line))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this in the background until it ends or the user leaves."""
        task = asyncio.ensure_future(work)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _finish(self, work: Awaitable[object]) -> None:
        with errors_shown(self._writer):
            await work

    def _steer(self, line: str) -> bool:
        """Send a message to the current work. Return False if it must wait, or nothing is being done."""
        if self._guest or not self._client.busy or read_prompt(line):
            return False
        if line.startswith(SHELL_SIGNS):
            return self._run_between(line[1:].strip())
        if is_stop(line):
            self._screen.said(line)
            asyncio.get_running_loop().call_soon(self.stop)  # once the input line is empty
            return True
        if name_command(self._context, line):
            return True
        with errors_shown(self._writer):
            self._start(self._send_now(line, self._client.send(self._message(line))))
        return True

    async def _send_now(self, line: str, sent: Awaitable[commands.SessionResult]) -> None:
        """Show the message of a line sent during the work if the session refuses it."""
        with errors_shown(self._writer):
            if objection := (await sent).objection:
                self._screen.said(line)
                self._writer.line(text(objection), "yellow")

    def _run_between(self, command: str) -> bool:
        """Let a `!command` run before the model's next decision. Return False if it must wait."""
        if not command:
            return False
        with errors_shown(self._writer):
            self._client.send(commands.RunShellCommand(command=command))
        return True

    def _message(self, line: str) -> commands.SayMessage:
        pictures = self._keyboard.pictures.pop(line, ())
        kept = self._client.keep_pictures(pictures) if pictures else ()
        return commands.SayMessage(text=line, pictures=kept)

    async def _undo_later(self, typed: TypedCommand) -> None:
        self._undos += 1
        try:
            await dispatch_in_turn(self._context, typed)
        finally:
            self._undos -= 1

    def stop(self) -> None:
        """Esc: stop the work or the background, and put waiting lines back, one after the other.

        Esc twice while nothing is done: go back to a message (L8).
        """
        again = time.monotonic() - self._escaped < _DOUBLE_PRESS_S
        self._escaped = time.monotonic()
        client = self._client
        if client.busy or self._guest or client.state.background_runs or client.state.background_commands:
            self._restored = [*client.take_back(), *self._keyboard.inbox.take_all(), *self._restored]
            client.send(commands.CancelWork())
            if typed := self._keyboard.swap_line(""):
                self._restored.append(typed)
            self._restore()
        elif again:
            typed = self._keyboard.swap_line("")
            self._keyboard.swap_line(typed)
            if not typed:
                self._pick("/rewind")

    def _restore(self) -> None:
        """Put the next line back that a stop has taken, if the input line is empty."""
        if self._restored and (typed := self._keyboard.swap_line(self._restored[0])):
            self._keyboard.swap_line(typed)
        elif self._restored:
            del self._restored[0]

    def interrupt(self) -> None:
        """Ctrl-C: stop the work, else clear the line, else leave. A guest does not stop the work."""
        again = time.monotonic() - self._pressed < _DOUBLE_PRESS_S
        self._pressed = time.monotonic()
        if again:
            self.leave()
        elif self._client.busy and not self._guest:
            self.stop()
        elif self._keyboard.swap_line("") or self._restored:
            self._restored.clear()
        elif self._guest:
            self.leave()
        else:
            self._writer.line(text("chat.again"), "dim")

    def expand(self) -> None:
        """Ctrl-O: show the last result in full."""
        self._screen.expand()

    async def paste_picture(self) -> bytes | None:
        """Ctrl-V: return the picture in the clipboard, None if there is none."""
        picture = await read_clipboard(Path(self._client.state.workspace))
        if picture is None:
            self._writer.line(text("chat.no_picture"), "dim")
        return picture

    def change_mode(self) -> None:
        """Shift-Tab: change to the next mode."""
        place = MODES.index(self._client.state.mode)
        self._client.send(commands.SetMode(mode=MODES[(place + 1) % len(MODES)]))

    def _leave_for(self, session: str | None) -> None:
        """Leave this session for another one (empty: a new one), or end the program (None)."""
        if not self._exit.done():
            self._exit.set_result(session)
