"""`from duckflow import Session`: the engine for a program of your own (docs/python.md).

    async with Session("project", mode="ask") as session:
        async for update in session.start("Create hello.py that prints hello"):
            match update:
                case Recorded(event=ApprovalRequested(approval=approval)):
                    session.answer(approval, "yes")

`duckflow run` and `duckflow acp` are built on this.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, Self

from duckflow.app.app import App
from duckflow.app.opening import open_app
from duckflow.app.places import forget_files, open_log
from duckflow.app.work import Update, Work, Working
from duckflow.config.loading import LoadedSettings, load
from duckflow.domain import commands
from duckflow.domain.errors import UsageError
from duckflow.domain.events import EffortChanged, ModeChanged, Recorded
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.reduce.rewind import present
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.llm.local.relay import Relay
from duckflow.loops.undo.rewind import PastMessage, Rewind, fork
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.tools.files.unsaved import Unsaved
from duckflow.ui.commands.table import find_custom, read_prompt

Question = Approval | Consultation
Answer = AnswerApproval | ChooseWay | str
"""Words are read as in the conversation, in English and Japanese; what is no clear answer is asked again."""

Listener = Callable[[Update], None]


def earlier_sessions(folder: Path | str | None = None) -> Sequence[SessionSummary]:
    """The sessions there are, or those of one folder; the one used last comes first."""
    with closing(open_log()) as log:
        return Sessions(log.database).listed(None if folder is None else str(Path(folder).resolve()))


def find_session(wanted: str) -> SessionSummary:
    """The session with this id, or the only one whose id begins so; none of the fleet's."""
    with closing(open_log()) as log:
        found = Sessions(log.database).show(wanted)
    if found.is_run:
        raise UsageError("fleet.is_a_run", run=found.id)
    return found


def latest_session(folder: Path) -> SessionSummary:
    """The session in this folder that was used last; UsageError if there is none."""
    here = str(folder.resolve())
    with closing(open_log()) as log:
        found = Sessions(log.database).latest(here)
    if found is None:
        raise UsageError("session.none_here", folder=here)
    return found


def delete_session(wanted: str) -> SessionSummary:
    """Delete a session and all that is kept of it; what was deleted."""
    with closing(open_log()) as log:
        gone = Sessions(log.database).delete(wanted)
    forget_files(gone.id)
    return gone


class OpenSession:
    """A session in a folder, which programs know as `duckflow.Session`.

    `folder` is the current one if left out, or that of the session whose id (or its beginning) `resume` is.
    `settings` overrides the user's configuration by dotted key (`{"shell.network": True}`) or, from
    `config.loading.load`, replaces it. `trust` lets the folder's own configuration act. `attended` says
    that somebody answers questions, who is then also asked whether the project's own tests may run.
    `unsaved` gives the text of files that are open in an editor.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        resume: str | None = None,
        model: str | None = None,
        mode: Mode | None = None,
        verify: str | None = None,
        settings: Mapping[str, object] | LoadedSettings | None = None,
        trust: bool = False,
        attended: bool = False,
        unsaved: Unsaved | None = None,
    ) -> None:
        self._folder, self._resume = folder, resume
        self._model, self._mode, self._verify = model, mode, verify
        self._settings, self._trust, self._attended = settings, trust, attended
        self._unsaved = unsaved
        self._listeners: list[Listener] = []
        self._unseen: list[Update] = []
        self._app: App | None = None
        self._given: tuple[Question, Answer] | None = None
        self.answered_elsewhere = asyncio.Event()
        """Set while the answer another window gave is not taken yet; one's own comes too late then."""
        self._work: Work | None = None
        self._serving: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        """Open it."""
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    async def open(self) -> None:
        """Open the session; UserError if there is none, its folder is in use, or no model answers."""
        earlier = find_session(self._resume) if self._resume else None
        folder = Path(self._folder or (earlier.workspace if earlier else ""))
        loaded = self._loaded(folder)
        relay = Relay() if self._attended else None
        app = await open_app(
            loaded,
            folder,
            earlier.id if earlier else None,
            relay,
            self._show,
            keeps_mode=self._mode is None,
            model_first=True,
            unsaved=self._unsaved,
            verify=self._verify,
        )
        self._app = app
        self._serving = asyncio.ensure_future(app.clients.serve(self._receive))

    async def close(self) -> None:
        """Stop what runs and give everything back; what happened is stored, and can be gone on with."""
        if self._serving is not None:
            self._serving.cancel()
        if self._work is not None:
            await self._work.stop()
        app, self._app = self._app, None
        if app is not None:
            await app.aclose()

    @property
    def app(self) -> App:
        """The parts of the engine, for those who need more than this."""
        if self._app is None:
            raise UsageError("session.not_open")
        return self._app

    @property
    def id(self) -> str:
        """The session's id, to go on with it later."""
        return self.state.session_id

    @property
    def state(self) -> AgentState:
        """All that is known of the session now; frozen."""
        return self.app.session.state

    @property
    def question(self) -> Question | None:
        """What waits for an answer, if anything does."""
        return self.state.approval or self.state.consultation

    def listen(self, listener: Listener) -> None:
        """Call this with every update from now on, also with those between two requests."""
        self._listeners.append(listener)

    def start(self, request: str) -> Work:
        """Work on a message: a new request, or more on the one that waits.

        Commands of the user's own (`/review a.py`) and prompts of MCP servers stand for what they say.
        """
        app = self.app
        return self._begin(lambda: _say(app, request))

    def go_on(self) -> Work:
        """Go on with what is open: take the answer that was given, ask again, or work on."""
        if self._given is None and self.question is None and self.state.request is None:
            raise UsageError("run.nothing_open", session=self.id)
        return self._begin(self._continue)

    def answer(self, question: Question, answer: Answer) -> None:
        """Answer exactly what was shown; UsageError if that is not what is asked any more.

        Inside of a loop over `start` the work goes on by itself; afterwards `go_on` does it.
        """
        if question != self.question:
            raise UsageError("session.other_question")
        self._given = (question, answer)

    def cancel(self) -> None:
        """Stop the request that runs, in the background too; the session stays open."""
        self._given = None
        self.answered_elsewhere.clear()
        if self._app is not None:
            self._app.tasks.cancel()
        if self._work is not None:
            self._work.cancel()

    def set_mode(self, mode: Mode) -> None:
        """Ask more, or less, from now on."""
        self.app.session.record(ModeChanged(mode=mode))

    async def set_model(self, name: str) -> None:
        """Think with another model from now on."""
        await self.app.model.change(name)

    def set_effort(self, effort: EffortChoice) -> None:
        """Let models think more, or less, from now on."""
        self.app.session.record(EffortChanged(effort=effort))

    def events(self) -> Sequence[Recorded]:
        """All that happened, from the first event; not what was gone back behind."""
        return present(self.app.log.load(self.id))

    async def diff(self, *, session: bool = False) -> str:
        """What changed since the last request began, or the session."""
        return await self.app.undoing.diff(session=session)

    async def undo(self, actions: int | Literal["all", "redo"] = 1) -> UndoReport:
        """Take back so many actions, "all" of the last request, or ("redo") what was taken back last."""
        undoing = self.app.undoing
        if actions == "redo":
            return await undoing.redo()
        return await (undoing.undo_request() if actions == "all" else undoing.undo(actions))

    def messages(self) -> Sequence[PastMessage]:
        """What was said, oldest first: to go back to."""
        return self._rewind().messages()

    async def rewind(self, number: int, *, conversation: bool = True, files: bool = True) -> UndoReport:
        """Go back to before a message, with the conversation, the files, or both."""
        return await self._rewind().back_to(number, conversation=conversation, files=files)

    def fork(self, number: int | None = None) -> str:
        """The id of a new session that begins as this one is now, or was before a message."""
        return fork(self.app.log, self.id, number)

    def _rewind(self) -> Rewind:
        return Rewind(self.app.session, self.app.log, self.app.undoing)

    def _receive(self, command: commands.ClientCommand) -> Callable[[], None] | str | None:
        """Other windows may stop the work, change the mode, and answer while somebody is asked here; the
        rest waits for its next owner."""
        match command:
            case commands.CancelWork():
                busy = self._work is not None and self._work.busy
                return self.cancel if busy else "clients.nothing_runs"
            case commands.SetMode(mode=mode):
                return lambda: self.set_mode(mode)
            case commands.SetEffort(effort=effort):
                return lambda: self.set_effort(effort)
            case commands.AnswerShown() | commands.ChooseShown():
                objection = "clients.stale" if self._given else commands.objection_to(command, self.state)
                if objection is not None or self._work is None or self._work.over:
                    return objection
                answer = command.answer if isinstance(command, commands.AnswerShown) else command.way
                return lambda: self._take_answer(answer)
            case _:
                return None

    def _take_answer(self, answer: Answer) -> None:
        if self.question is not None:
            self.answer(self.question, answer)
            self.answered_elsewhere.set()

    def _loaded(self, folder: Path) -> LoadedSettings:
        if isinstance(self._settings, LoadedSettings):
            return self._settings
        flags = {**(self._settings or {}), "llm.model": self._model, "mode": self._mode}
        return load(folder, trusted=self._trust, flags=flags)

    def _show(self, update: Update) -> None:
        for listener in self._listeners:
            listener(update)
        if self._work is not None and not self._work.over:
            self._work.take(update)
        elif isinstance(update, Recorded):
            self._unseen.append(update)

    def _begin(self, work: Callable[[], Working]) -> Work:
        if self._work is not None and self._work.busy:
            raise UsageError("session.busy")
        self._work = Work(self._whole(work), self._next, self._unseen)
        self._unseen = []
        return self._work

    def _next(self) -> Working | None:
        """What follows a part of the work: that which an answer started, if one was given meanwhile."""
        return self._whole(self._continue) if self._given is not None else None

    async def _whole(self, work: Callable[[], Working]) -> RequestOutcome:
        """Work, and let the background end its list."""
        return await self.app.chat.let_background_end(await work())

    async def _continue(self) -> RequestOutcome:
        (question, answer), self._given = self._given or (None, ""), None
        self.answered_elsewhere.clear()
        chat, unanswered = self.app.chat, self.question
        if unanswered is None:
            return await chat.go_on()
        if question != unanswered:
            return chat.remind()
        if isinstance(answer, str):
            return await chat.answer_in_words(answer)
        if isinstance(unanswered, Approval):
            return await chat.answer(answer) if isinstance(answer, AnswerApproval) else chat.remind()
        return await chat.choose(answer) if isinstance(answer, ChooseWay) else chat.remind()


async def _say(app: App, request: str) -> RequestOutcome:
    """Say it, or what it stands for: a command of the user's own, a prompt of an MCP server."""
    prompt = read_prompt(request)
    if prompt is not None and app.mcp is not None:
        await app.mcp.ready()
        server, _, name = prompt.name.partition(".")
        return await app.chat.say(await app.mcp.prompt(server, name, prompt.argument))
    return await app.chat.say(find_custom(request, app.extensions.commands) or request)
