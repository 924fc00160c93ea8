"""`from duckflow import Session`: the engine for Python programs (docs/python.md).

    async with Session("project", mode="ask") as session:
        async for update in session.start("Create hello.py that prints hello"):
            match update:
                case StoredEvent(event=ApprovalRequested(approval=approval)):
                    session.answer(approval, "yes")

`duckflow run` and `duckflow acp` are built on this.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, Self

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.app.places import forget_files, open_log
from duckflow.config.loading import LoadedSettings, load
from duckflow.config.startup_language import configured_language
from duckflow.domain import commands
from duckflow.domain.errors import UsageError
from duckflow.domain.events import RequestFinished, StoredEvent
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import EFFORTS, EffortChoice
from duckflow.domain.modes import MODES, Mode
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.reduce.rewind import present
from duckflow.domain.session_client import PastMessage, SessionUpdate, StatusChanged, find_message
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.catalogue import set_language_once
from duckflow.loops.thinking.pictures import keep_pictures
from duckflow.session.channel import UpdateQueue
from duckflow.session.host import SessionHost
from duckflow.session.local import LocalSession
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.tools.files.unsaved import Unsaved

Question = Approval | Consultation
Answer = AnswerApproval | ChooseWay | str
"""Text is understood as in the conversation, in English and Japanese; the question stays if it is unclear."""

Update = StoredEvent | LiveUpdate
"""An event with its number and time, or a live update."""

Listener = Callable[[Update], None]


def earlier_sessions(folder: Path | str | None = None) -> Sequence[SessionSummary]:
    """Return all sessions, or those of one folder, the most recently used first."""
    with closing(open_log()) as log:
        return Sessions(log.database).listed(None if folder is None else str(Path(folder).resolve()))


def find_session(wanted: str) -> SessionSummary:
    """Return the session with this id or unique prefix of it; UsageError for a run of the fleet."""
    with closing(open_log()) as log:
        found = Sessions(log.database).show(wanted)
    if found.is_run:
        raise UsageError("fleet.is_a_run", run=found.id)
    return found


def latest_session(folder: Path) -> SessionSummary:
    """Return the session that was used last in this folder; UsageError if it has no session."""
    here = str(folder.resolve())
    with closing(open_log()) as log:
        found = Sessions(log.database).latest(here)
    if found is None:
        raise UsageError("session.none_here", folder=here)
    return found


def delete_session(wanted: str) -> SessionSummary:
    """Delete a session with all its files, and return its summary."""
    with closing(open_log()) as log:
        gone = Sessions(log.database).delete(wanted)
    forget_files(gone.id)
    return gone


class GivenAnswer:
    """The answer that a program has given, until it is applied."""

    def __init__(self) -> None:
        self.value: tuple[Question, Answer] | None = None

    def take(self) -> commands.SessionCommand | None:
        """Remove the answer and return it as a command; None if there is no answer."""
        given, self.value = self.value, None
        if given is None:
            return None
        question, answer = given
        shown = commands.hash_of(question)
        if isinstance(answer, AnswerApproval):
            return commands.AnswerShown(question_hash=shown, answer=answer)
        if isinstance(answer, ChooseWay):
            return commands.ChooseShown(question_hash=shown, way=answer)
        return commands.AnswerInWords(question_hash=shown, text=answer)


class Work:
    """Work on a message: iterate over its updates, or await its outcome. It starts at once.

    A `RequestFinished` that waits for an answer is left out if the answer was given in the loop.
    """

    def __init__(
        self,
        host: SessionHost,
        command: commands.SessionCommand,
        updates: UpdateQueue,
        given: GivenAnswer,
    ) -> None:
        self._host = host
        self._updates = updates
        self._given = given
        self._receipt = host.send(command)
        self._withheld: StoredEvent | None = None
        self.outcome: RequestOutcome | None = None
        """None until the work has ended."""
        self.over = False
        """True once all updates have been delivered."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        while not self.over:
            for update in self._updates.pending():
                match update:
                    case StatusChanged():
                        pass
                    case StoredEvent(event=RequestFinished()) if self._given.value is not None:
                        self._withheld = update
                    case StoredEvent(event=RequestFinished()):
                        self._withheld = None
                        return update
                    case _:
                        return update
            if self._host.busy or not self._receipt.done.done():
                await self._updates.arrival()
                continue
            result = self._receipt.done.result()
            self.outcome = self._host.outcome if result.objection else result.outcome
            following = self._given.take()
            if following is not None:
                self._receipt = self._host.send(following)
            elif self._withheld is not None:  # the answer was refused or withdrawn
                withheld, self._withheld = self._withheld, None
                return withheld
            else:
                self.over = True
        raise StopAsyncIteration

    def __await__(self) -> Generator[Any, None, RequestOutcome]:
        """Wait for the outcome, skipping the updates."""
        return self._drain().__await__()

    async def _drain(self) -> RequestOutcome:
        async for _ in self:
            pass
        assert self.outcome is not None
        return self.outcome


class OpenSession:
    """A session in a folder, exported as `duckflow.Session`.

    `folder` defaults to the current folder, or to that of the session that `resume` names by its id or a
    prefix of it. `settings` overrides the user's configuration by dotted key (`{"shell.network": True}`), or
    replaces it by a result of `config.loading.load`. `trust` applies the folder's own configuration.
    `attended` says that a user answers questions, including whether the project's own tests may run.
    `unsaved` provides the text of files that are open in an editor. `reads_only` opens a new session that
    stays in mode plan and never changes the folder, so another session may be open there.
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
        reads_only: bool = False,
    ) -> None:
        if reads_only and resume:
            raise ValueError("a session that only reads is a new one")
        self._folder, self._resume = folder, resume
        self._model, self._mode, self._verify = model, mode, verify
        self._settings, self._trust, self._attended = settings, trust, attended
        self._unsaved, self._reads_only = unsaved, reads_only
        self._updates = UpdateQueue()
        self._listeners: list[Listener] = []
        self._client: LocalSession | None = None
        self._given = GivenAnswer()
        set_language_once(configured_language(), os.environ)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the session; UserError if it does not exist, its folder is in use, or no model answers."""
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
            reads_only=self._reads_only,
        )
        self._client = LocalSession(await SessionHost.open(opening, self._show, driven=True), loaded)

    async def close(self) -> None:
        """Stop the work and release all resources. The session is stored and can be resumed."""
        client, self._client = self._client, None
        if client is not None:
            await client.host.aclose()

    @property
    def client(self) -> LocalSession:
        """The session as user interfaces see it; UsageError if it is not open."""
        if self._client is None:
            raise UsageError("session.not_open")
        return self._client

    @property
    def app(self) -> App:
        """The parts of the engine, for callers that need more than this class."""
        return self.client.host.app

    @property
    def id(self) -> str:
        """The session's id, for resuming it later."""
        return self.state.session_id

    @property
    def state(self) -> AgentState:
        """The current state; frozen."""
        return self.client.state

    @property
    def question(self) -> Question | None:
        """The open question, or None."""
        return self.state.question

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every update from now on, including those between requests."""
        self._listeners.append(listener)

    def start(self, request: str, pictures: Sequence[bytes] = ()) -> Work:
        """Work on a new request or an addition to the open one; commands and MCP prompts are expanded.

        `pictures` are PNG, JPEG, GIF or WebP files; UsageError if one can't be shown.
        """
        if self.client.busy:
            raise UsageError("session.busy")
        return self._begin(self._message(request, pictures))

    def send(self, message: str, pictures: Sequence[bytes] = ()) -> None:
        """Say something while the work runs or waits. It reaches the model with its next decision (C6).

        A loop over `start` shows what follows. A bare "stop" stops the work; UsageError if nothing runs.
        """
        if not self.client.busy and self.question is None:
            raise UsageError("clients.nothing_runs")
        self.client.send(self._message(message, pictures))

    def go_on(self) -> Work:
        """Continue the open request: apply the given answer, ask again, or work on."""
        if self._given.value is None and self.question is None and self.state.request is None:
            raise UsageError("run.nothing_open", session=self.id)
        return self._begin(self._given.take() or commands.ContinueWork())

    def answer(self, question: Question, answer: Answer) -> None:
        """Answer a question as it was shown; UsageError if another question is open now.

        Inside a loop over `start` the work then continues automatically; later, call `go_on`.
        """
        if question != self.question:
            raise UsageError("session.other_question")
        self._given.value = (question, answer)

    def cancel(self) -> None:
        """Stop the running request, including its background work; the session stays open."""
        self._given.value = None
        if self._client is not None:
            waits = not self._client.busy and self.state.background_runs
            self._client.send(commands.StopBackground() if waits else commands.CancelWork())

    def set_mode(self, mode: Mode) -> None:
        """Set the permission mode from now on."""
        if mode not in MODES:
            raise UsageError("mode.unknown", mode=mode, modes=", ".join(MODES))
        self.client.send(commands.SetMode(mode=mode))

    async def set_model(self, name: str) -> None:
        """Use another model from now on."""
        await self.client.send(commands.SetModel(name=name))

    def set_effort(self, effort: EffortChoice) -> None:
        """Set the thinking effort of models from now on."""
        if effort not in EFFORTS:
            raise UsageError("effort.unknown", effort=effort, efforts=", ".join(EFFORTS))
        self.client.send(commands.SetEffort(effort=effort))

    def events(self) -> Sequence[StoredEvent]:
        """Return all events of the conversation, oldest first, without rewound ones."""
        return present(self.app.log.load(self.id))

    async def diff(self, *, session: bool = False) -> str:
        """Return the changes since the last request, or the session, began."""
        return await self.client.diff(session=session)

    async def undo(self, actions: int | Literal["all", "redo"] = 1) -> UndoReport:
        """Undo a number of actions or "all" of the last request, or "redo" the last undo."""
        done = await self.client.send(commands.UndoWork(wanted=str(actions)))
        return done.report or UndoReport()

    def messages(self) -> Sequence[PastMessage]:
        """Return the user's messages, oldest first, for `rewind` and `fork`."""
        return self.client.messages()

    async def rewind(self, number: int, *, conversation: bool = True, files: bool = True) -> UndoReport:
        """Return to the point before a message: the conversation, the files, or both."""
        before = find_message(self.messages(), number).seq
        part: commands.RewindPart = "both" if conversation and files else "files" if files else "conversation"
        done = await self.client.send(commands.RewindWork(before=before, part=part))
        return done.report or UndoReport()

    def fork(self, number: int | None = None) -> str:
        """Start a new session from this one, as it is now or was before a message, and return its id."""
        before = None if number is None else find_message(self.messages(), number).seq
        return self.client.send(commands.ForkSession(before=before)).done.result().session_id

    def _message(self, text: str, pictures: Sequence[bytes]) -> commands.SayMessage:
        if not text.strip() and not pictures:
            raise UsageError("session.empty")
        return commands.SayMessage(text=text, pictures=keep_pictures(pictures, self.id, self.app.kept))

    def _loaded(self, folder: Path) -> LoadedSettings:
        if isinstance(self._settings, LoadedSettings):
            return self._settings
        arguments = {"llm.model": self._model, "mode": self._mode}
        chosen = {key: value for key, value in arguments.items() if value is not None}
        return load(folder, trusted=self._trust, given={**(self._settings or {}), **chosen})

    def _show(self, update: SessionUpdate) -> None:
        self._updates(update)
        if not isinstance(update, StatusChanged):
            for listener in self._listeners:
                listener(update)

    def _begin(self, command: commands.SessionCommand) -> Work:
        if self.client.busy:
            raise UsageError("session.busy")
        earlier = [one for one in self._updates.pending() if isinstance(one, StoredEvent)]
        for update in earlier:
            self._updates(update)
        return Work(self.client.host, command, self._updates, self._given)
