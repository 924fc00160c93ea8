"""A second terminal window on a session that is open elsewhere: it reads along and asks the owner (M7).

Nothing is done in this process. Events come from the database, pieces of replies from the live file; what the
user wants goes into the session's inbox, bound to what was shown.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duckflow.api import find_session
from duckflow.app.places import LIVE, holder_of, open_log
from duckflow.cli.secrets import redactor
from duckflow.config.loading import load
from duckflow.config.places import state_dir
from duckflow.domain import commands
from duckflow.domain.errors import UsageError
from duckflow.domain.events import Recorded, Rewound
from duckflow.domain.extensions import Extensions
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import MODES, Mode
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.reduce.apply import apply
from duckflow.domain.reduce.rewind import present
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.loops.session import Session
from duckflow.loops.undo.rewind import past_messages
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.live_file import LiveView, live_path, read_live
from duckflow.store.sessions import SessionSummary
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand, find_command, read_command
from duckflow.ui.engine import Surroundings
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.editor import edit_on_line
from duckflow.ui.input.listener import Listener
from duckflow.ui.questions import Questions
from duckflow.ui.screen import Screen
from duckflow.ui.transcript import last_exchange
from duckflow.ui.views.live.activity import prompt_view
from duckflow.ui.web.session_view import works_after

if TYPE_CHECKING:
    from duckflow.ui.engine import Engine

_LOOK_S = 0.1
_OWNER_LOOKS = 10
"""So many looks later it is asked again whether anybody has the session open."""
_HERE = ("status", "goal", "plan", "tasks", "cost", "expand", "mode", "effort", "quit")
"""Commands that need the state and nothing else."""
_PARTS: dict[str, commands.RewindPart] = {"conversation": "conversation", "files": "files"}


async def converse(wanted: str, frontend: Frontend) -> None:
    """Look at a session until the user leaves, or whoever has it open does."""
    found = find_session(wanted)
    if holder_of(found.workspace) != found.id:
        raise UsageError("attach.nobody", session=found.id)
    ui = load(Path(found.workspace), trusted=False, flags={}).settings.ui
    frontend.adapt(ui.theme, vi=ui.editing_mode == "vi")
    with closing(open_log()) as log:
        await AttachedWindow(OpenElsewhere(log, found), frontend).run()


class OpenElsewhere:
    """A session as another process has it: the state, and an inbox for the rest."""

    around = Surroundings()
    extensions = Extensions()

    def __init__(self, log: SqliteEventLog, found: SessionSummary) -> None:
        self._log = log
        self._found = found
        self._inbox = CommandInbox(log.database)
        self._sent: list[int] = []
        self._version = -1
        self._state = Session.load(log, found.id).state
        self.earlier = log.load(found.id)
        self.working = False
        for one in self.earlier:
            self.working = works_after(one.event, self.working)

    @property
    def state(self) -> AgentState:
        """The newest state that was read."""
        return self._state

    def read(self) -> Iterator[Recorded]:
        """What happened since the last look."""
        version = self._log.database.version()
        if version == self._version:
            return
        for one in self._log.load_after(self._found.id, self._state.seq):
            if isinstance(one.event, Rewound):
                self._state = Session.load(self._log, self._found.id).state
            elif one.seq > self._state.seq:
                self._state = apply(self._state, one)
            self.working = works_after(one.event, self.working)
            yield one
        self._version = version

    def live(self) -> LiveView:
        """What is being written."""
        return read_live(live_path(state_dir() / LIVE, self._found.id))

    def is_open(self) -> bool:
        """Whether anybody still has it open."""
        return holder_of(self._found.workspace) == self._found.id

    def send(self, command: commands.ClientCommand) -> None:
        """Leave a command; what is wrong with it is known later."""
        self._sent.append(self._inbox.put(self._found.id, redactor().clean_all(command)))

    def objections(self) -> Iterator[str]:
        """What became known to be wrong with a command."""
        for number in [*self._sent]:
            result = self._inbox.result(number) if number else "web.too_many"
            if result is not None:
                self._sent.remove(number)
                if result:
                    yield text(result)

    def nothing(self) -> tuple[()]:
        """What is not suggested in a second window."""
        return ()

    files = models = sessions = servers = nothing

    def message(self, number: int) -> int:
        """The event of a message, by its number; 0 if there is none."""
        said = past_messages(self._log.load(self._found.id))
        return next((one.seq for one in said if one.number == number), 0)

    def set_mode(self, mode: Mode) -> None:
        """Ask more, or less, from now on."""
        self.send(commands.SetMode(mode=mode))

    def set_effort(self, effort: EffortChoice) -> None:
        """Let models think more, or less, from now on."""
        self.send(commands.SetEffort(effort=effort))


class AttachedWindow(Listener):
    """Listens to the keyboard and shows what happens; a question is asked here too, until it is answered."""

    def __init__(self, remote: OpenElsewhere, frontend: Frontend) -> None:
        super().__init__(frontend.keyboard.left)
        self._remote = remote
        self._frontend = frontend
        self._writer, self._keyboard = frontend.writer, frontend.keyboard
        self._screen = Screen(frontend.writer, also=("message", "undo"))
        self._engine = cast("Engine", remote)  # the commands of `_HERE` ask for nothing else
        self._context = CommandContext(self._engine, frontend.writer, self._screen, self._leave_for)
        editing = edit_on_line(self._keyboard, "")
        self._questions = Questions(self._context, self._keyboard, editing, self._dispatch)
        self._shown = LiveView()
        self._asked = ""
        self._asking: asyncio.Task[None] | None = None
        self._keyboard.listener = self

    async def run(self) -> None:
        """Until the user leaves, or there is nobody to talk to."""
        for line in last_exchange(present(self._remote.earlier)):
            self._writer.line(line, "dim")
        self._writer.line(text("attach.hello", session=self._remote.state.session_id), "dim")
        draw = prompt_view(self._engine, self._screen.activity, self._keyboard)
        self._frontend.attach(draw, self._engine)
        parts = (self._follow(), self._read(), self._keyboard.left.wait())
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(one) for one in parts]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for one in ended:
                one.result()
        finally:
            tasks += [self._asking] if self._asking else []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        looks = 0
        while True:
            for recorded in self._remote.read():
                self._ask()
                self._screen(recorded)
            self._show_live(self._remote.live())
            for objection in self._remote.objections():
                self._writer.line(objection, "yellow")
            self._ask()
            self._screen.activity.busy = self._remote.working
            self._keyboard.refresh()
            looks += 1
            if looks % _OWNER_LOOKS == 0 and not self._remote.is_open():
                self._writer.line(text("attach.left", session=self._remote.state.session_id), "yellow")
                return
            await asyncio.sleep(_LOOK_S)

    async def _read(self) -> None:
        """Send what is typed. Without a terminal the end of input is not the end: there is more to see."""
        with suppress(EOFError):
            while True:
                said = await self._keyboard.inbox.get()
                if not said.strip():
                    continue
                typed = read_command(said)
                if typed is not None:
                    await self._dispatch(self._context, typed)
                else:
                    self._remote.send(commands.SayMessage(text=said))
        await asyncio.Event().wait()

    def _show_live(self, live: LiveView) -> None:
        """Show what is new of the model's thinking, of a reply and of a command's output."""
        before, self._shown = self._shown, live
        if live.thinking and live.thinking != before.thinking:
            self._screen(ThinkingShown(text=live.thinking.removeprefix(before.thinking)))
        if live.reply != before.reply and live.reply:
            if not live.reply.startswith(before.reply):
                self._screen(ReplyVoid())
                before = LiveView()
            self._screen(ReplyPiece(text=live.reply[len(before.reply) :]))
        if live.output != before.output and live.output:
            fresh = live.output.removeprefix(before.output) if before.output else live.output
            self._screen(OutputPiece(text=fresh))

    def _ask(self) -> None:
        """Ask what is open, once; a question that is gone was answered elsewhere."""
        asked = self._remote.state.approval or self._remote.state.consultation
        key = commands.hash_of(asked) if asked else ""
        if key == self._asked:
            return
        if self._asking is not None and not self._asking.done():
            self._asking.cancel()
            self._writer.line(text("clients.answered"), "dim")
        self._asked = key
        self._asking = asyncio.ensure_future(self._settle(asked, key)) if asked else None

    async def _settle(self, asked: Approval | Consultation, shown: str) -> None:
        if isinstance(asked, Approval):
            answer = await self._questions.approve(asked)
            command = commands.AnswerShown(shown=shown, answer=answer) if answer else None
        else:
            way = await self._questions.consult(asked)
            command = commands.ChooseShown(shown=shown, way=way) if way else None
        if command is None:
            self._writer.line(text("attach.open"), "dim")
        else:
            self._remote.send(command)

    async def _dispatch(self, context: CommandContext, typed: TypedCommand) -> None:
        """The commands that make sense in a second window."""
        command = find_command(typed.name)
        name, words = command.name if command else "", typed.argument.split()
        if name in _HERE:
            await dispatch_in_turn(context, typed)
        elif name == "cancel":
            self.stop()
        elif name == "undo":
            self._remote.send(commands.UndoWork(wanted=typed.argument[:10]))
        elif name == "rewind" and words and words[0].isdecimal():
            part = _PARTS.get(" ".join(words[1:]), "both")
            self._remote.send(commands.RewindWork(before=self._remote.message(int(words[0])), part=part))
        else:
            self._writer.line(text("attach.not_here", session=self._remote.state.session_id), "yellow")

    def _leave_for(self, _session: str | None) -> None:
        self.leave()

    def stop(self) -> None:
        """Esc: stop the work, wherever it is done."""
        self._remote.send(commands.CancelWork())

    def interrupt(self) -> None:
        """Ctrl-C: clear the line, or leave; the work goes on."""
        if not self._keyboard.swap_line(""):
            self.leave()

    def expand(self) -> None:
        """Ctrl-O: show the last result whole."""
        self._screen.expand()

    def change_mode(self) -> None:
        """Shift-Tab: the next mode."""
        place = MODES.index(self._remote.state.mode)
        self._remote.set_mode(MODES[(place + 1) % len(MODES)])
