"""`from duckflow import Session`: the engine for a program of your own (docs/python.md).

    async with Session("project", mode="ask") as session:
        async for update in session.start("Create hello.py that prints hello"):
            match update:
                case StoredEvent(event=ApprovalRequested(approval=approval)):
                    session.answer(approval, "yes")

`duckflow run` and `duckflow acp` are built on this.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, Self

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.app.places import forget_files, open_log
from duckflow.config.loading import LoadedSettings, load
from duckflow.domain.commands import (
    AnswerInWords,
    AnswerShown,
    CancelWork,
    ChooseShown,
    ContinueWork,
    ForkSession,
    RewindPart,
    RewindWork,
    SayMessage,
    SessionCommand,
    SetEffort,
    SetMode,
    SetModel,
    StopBackground,
    UndoWork,
    hash_of,
)
from duckflow.domain.errors import UsageError
from duckflow.domain.events import StoredEvent
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.reduce.rewind import present
from duckflow.domain.session_client import PastMessage, SessionUpdate, StatusChanged, find_message
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.session.channel import UpdateQueue
from duckflow.session.host import SessionHost
from duckflow.session.local import LocalSession
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.tools.files.unsaved import Unsaved

Question = Approval | Consultation
Answer = AnswerApproval | ChooseWay | str
"""Words are read as in the conversation, in English and Japanese; what is no clear answer is asked again."""

Update = StoredEvent | LiveUpdate
"""An event with its number and time, or a live update."""

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


class Work:
    """The work on a message: iterate over its updates, or await its outcome. It runs in any case."""

    def __init__(
        self,
        host: SessionHost,
        command: SessionCommand,
        updates: UpdateQueue,
        more: Callable[[], SessionCommand | None],
    ) -> None:
        self._host = host
        self._updates = updates
        self._more = more
        self._receipt = host.send(command)
        self.outcome: RequestOutcome | None = None
        """The way it ended; None before that."""
        self.over = False
        """True once all of it was seen."""

    def __aiter__(self) -> Self:
        """Its updates, to the end."""
        return self

    async def __anext__(self) -> Update:
        """The next update."""
        while not self.over:
            for update in self._updates.pending():
                if not isinstance(update, StatusChanged):
                    return update
            if self._host.busy or not self._receipt.done.done():
                await self._updates.arrival()
                continue
            result = self._receipt.done.result()
            self.outcome = self._host.outcome if result.objection else result.outcome
            following = self._more()
            if following is None:
                self.over = True
            else:
                self._receipt = self._host.send(following)
        raise StopAsyncIteration

    def __await__(self) -> Generator[Any, None, RequestOutcome]:
        """Let it end, whatever there is to see."""
        return self._drain().__await__()

    async def _drain(self) -> RequestOutcome:
        async for _ in self:
            pass
        assert self.outcome is not None
        return self.outcome


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
        self._updates = UpdateQueue()
        self._listeners: list[Listener] = []
        self._host: SessionHost | None = None
        self._given: tuple[Question, Answer] | None = None

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
        opening = Opening(
            loaded,
            folder,
            earlier.id if earlier else None,
            attended=self._attended,
            keeps_mode=self._mode is None,
            model_first=True,
            unsaved=self._unsaved,
            verify=self._verify,
        )
        self._host = await SessionHost.open(opening, self._show, driven=True)
        self._client = LocalSession(self._host, loaded)

    async def close(self) -> None:
        """Stop what runs and give everything back; what happened is stored, and can be gone on with."""
        host, self._host = self._host, None
        if host is not None:
            await host.aclose()

    @property
    def host(self) -> SessionHost:
        """The actor that carries out what this session is asked for."""
        if self._host is None:
            raise UsageError("session.not_open")
        return self._host

    @property
    def client(self) -> LocalSession:
        """The session as the interfaces of this program see it."""
        return self._client

    @property
    def app(self) -> App:
        """The parts of the engine, for those who need more than this."""
        return self.host.app

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
        return self.state.question

    def listen(self, listener: Listener) -> None:
        """Call this with every update from now on, also with those between two requests."""
        self._listeners.append(listener)

    def start(self, request: str) -> Work:
        """Work on a message: a new request, or more on the one that waits.

        Commands of the user's own (`/review a.py`) and prompts of MCP servers stand for what they say.
        """
        return self._begin(SayMessage(text=request))

    def go_on(self) -> Work:
        """Go on with what is open: take the answer that was given, ask again, or work on."""
        if self._given is None and self.question is None and self.state.request is None:
            raise UsageError("run.nothing_open", session=self.id)
        return self._begin(self._answer() or ContinueWork())

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
        if self._host is not None:
            waits = not self._host.busy and self.state.background_runs
            self._host.send(StopBackground() if waits else CancelWork())

    def set_mode(self, mode: Mode) -> None:
        """Ask more, or less, from now on."""
        self.host.send(SetMode(mode=mode))

    async def set_model(self, name: str) -> None:
        """Think with another model from now on."""
        await self.host.send(SetModel(name=name))

    def set_effort(self, effort: EffortChoice) -> None:
        """Let models think more, or less, from now on."""
        self.host.send(SetEffort(effort=effort))

    def events(self) -> Sequence[StoredEvent]:
        """All that happened, from the first event; not what was gone back behind."""
        return present(self.app.log.load(self.id))

    async def diff(self, *, session: bool = False) -> str:
        """What changed since the last request began, or the session."""
        return await self.client.diff(session=session)

    async def undo(self, actions: int | Literal["all", "redo"] = 1) -> UndoReport:
        """Take back so many actions, "all" of the last request, or ("redo") what was taken back last."""
        done = await self.host.send(UndoWork(wanted=str(actions)))
        return done.report or UndoReport()

    def messages(self) -> Sequence[PastMessage]:
        """What was said, oldest first: to go back to."""
        return self.client.messages()

    async def rewind(self, number: int, *, conversation: bool = True, files: bool = True) -> UndoReport:
        """Go back to before a message, with the conversation, the files, or both."""
        before = find_message(self.messages(), number).seq
        part: RewindPart = "both" if conversation and files else "files" if files else "conversation"
        done = await self.host.send(RewindWork(before=before, part=part))
        return done.report or UndoReport()

    def fork(self, number: int | None = None) -> str:
        """The id of a new session that begins as this one is now, or was before a message."""
        before = None if number is None else find_message(self.messages(), number).seq
        return self.host.send(ForkSession(before=before)).done.result().session_id

    def _loaded(self, folder: Path) -> LoadedSettings:
        if isinstance(self._settings, LoadedSettings):
            return self._settings
        flags = {**(self._settings or {}), "llm.model": self._model, "mode": self._mode}
        return load(folder, trusted=self._trust, flags=flags)

    def _show(self, update: SessionUpdate) -> None:
        self._updates(update)
        if not isinstance(update, StatusChanged):
            for listener in self._listeners:
                listener(update)

    def _begin(self, command: SessionCommand) -> Work:
        if self.host.busy:
            raise UsageError("session.busy")
        earlier = [one for one in self._updates.pending() if isinstance(one, StoredEvent)]
        for update in earlier:
            self._updates(update)
        return Work(self.host, command, self._updates, self._answer)

    def _answer(self) -> SessionCommand | None:
        """The answer that was given, as a command."""
        given, self._given = self._given, None
        if given is None:
            return None
        question, answer = given
        shown = hash_of(question)
        if isinstance(answer, AnswerApproval):
            return AnswerShown(question_hash=shown, answer=answer)
        if isinstance(answer, ChooseWay):
            return ChooseShown(question_hash=shown, way=answer)
        return AnswerInWords(question_hash=shown, text=answer)
