"""The engine as the conversation sees it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from duckflow.app import App
from duckflow.config.loading import Loaded, rows
from duckflow.domain.changes import UndoReport
from duckflow.domain.commands import AnswerApproval, ChooseWay
from duckflow.domain.decision import Action
from duckflow.domain.errors import ProviderError, ToolError, UsageError
from duckflow.domain.events import ModeChanged
from duckflow.domain.memory import Memory
from duckflow.domain.modes import Mode
from duckflow.domain.state import AgentState, RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.store.memory import Memories
from duckflow.store.sessions import Sessions
from duckflow.tools.searching.skip_list import SKIPPED
from duckflow.ui.engine import Earlier
from duckflow.ui.views.status_bar import Surroundings

_MOST_FILES = 5_000
_DEPTH = 8
_COMMAND = "shell.run"


class ChatWork:
    """The work: all that takes time and can be stopped."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def state(self) -> AgentState:
        """The newest state."""
        return self._app.session.state

    async def say(self, said: str) -> RequestOutcome:
        """Work on a message."""
        return await self._app.chat.say(said)

    async def answer(self, answer: AnswerApproval) -> RequestOutcome:
        """Go on after an approval was answered."""
        return await self._app.chat.answer(
            yes=answer.yes, reason=answer.reason, always=answer.always, edited=answer.edited
        )

    async def proposal(self) -> str | None:
        """The whole text that the open question would write or run; None if it can't be changed."""
        return await self._app.chat.proposal()

    async def choose(self, way: ChooseWay) -> RequestOutcome:
        """Go on after a consultation was answered."""
        return await self._app.chat.choose(way)

    async def go_on(self) -> RequestOutcome:
        """Go on with what waits for a report of the background."""
        return await self._app.chat.go_on()

    async def run_command(self, command: str) -> bool:
        """Run a shell command of the user's own, who needs no permission; False where none can be run."""
        action = Action(operation=_COMMAND, args={"command": command}, reasoning="the user ran it")
        try:
            await self._app.dispatcher.run_now([action])
        except ToolError:
            return False
        return True


class ChatLists(ChatWork):
    """The work, and what there is to list and to suggest."""

    def __init__(self, app: App, loaded: Loaded) -> None:
        super().__init__(app)
        self._loaded = loaded
        self._files: Sequence[str] = ()

    async def look(self) -> None:
        """Look at the files there are, for suggestions."""
        try:
            listing = await asyncio.to_thread(
                self._app.workspace.list, ".", depth=_DEPTH, limit=_MOST_FILES, skip=SKIPPED
            )
        except ToolError:
            return
        self._files = [entry.path for entry in listing.entries if entry.kind == "file"]

    def files(self) -> Sequence[str]:
        """The files there are, as last looked at."""
        return self._files

    def models(self) -> Sequence[str]:
        """Names of models worth suggesting: what is set, what is in use, and what needs no key."""
        llm = self._loaded.settings.llm
        named = (self.state.model, llm.model, llm.creative, llm.fast, llm.evaluator, "embedded", "relay")
        return list(dict.fromkeys(name for name in named if name))

    def sessions(self) -> Sequence[Earlier]:
        """Earlier sessions of this folder, the last one first."""
        listed = Sessions(self._app.log.database).listed(str(self._app.workspace.root))
        return [Earlier(one.id, one.title, one.updated) for one in listed]

    def memories(self) -> Sequence[Memory]:
        """What is kept for later sessions that counts in this folder, the newest first."""
        return Memories(self._app.log.database).listed(str(self._app.workspace.root))

    def settings(self) -> Sequence[str]:
        """Every setting that is not as it comes, in a line, and where to set more."""
        changed = [row for row in rows(self._loaded) if row.source.kind != "default"]
        lines = [
            f"{row.key} = {row.value}  # {text(f'config.source_{row.source.kind}', where=row.source.where)}"
            for row in changed
        ]
        return [*lines, text("config.more")]


class ChatEngine(ChatLists):
    """The work, the lists, and what the commands of the conversation change."""

    def __init__(self, app: App, loaded: Loaded) -> None:
        super().__init__(app, loaded)
        self._around = Surroundings()
        self._behind: set[asyncio.Task[None]] = set()

    @property
    def around(self) -> Surroundings:
        """What the status bar tells besides the state."""
        return self._around

    async def warm(self, changed: Callable[[], None]) -> None:
        """Behind the prompt: open the model, try the sandbox, look at the files."""
        self._around = self._around._replace(sandbox=(await self._app.shell.sandbox()).level)
        await self.look()
        changed()
        await self._app.model.warm()
        try:
            traits = await self._app.model.traits()
        except ProviderError:
            return  # the first message meets the same error, and tells it
        self._around = self._around._replace(window=traits.window)
        changed()

    async def say(self, said: str) -> RequestOutcome:
        """Work on a message; afterwards there may be other files, and something to name the session after."""
        outcome = await super().say(said)
        self._later(self.look())
        if self._loaded.settings.ui.titles and outcome == "done":
            self._later(self._app.titling.give())
        return outcome

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def aclose(self) -> None:
        """Stop what goes on behind the conversation."""
        for task in self._behind:
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)

    def cancel_tasks(self) -> bool:
        """Stop the background; False where nothing runs there."""
        return self._app.tasks.cancel()

    def rate(self, rating: int) -> bool:
        """Keep how the user liked the last request; False where there was none."""
        return self._app.chat.rate(rating)

    def set_mode(self, mode: Mode) -> None:
        """Ask more, or less, from now on."""
        self._app.session.record(ModeChanged(mode=mode))

    async def set_model(self, name: str) -> None:
        """Think with another model from now on."""
        await self._app.model.change(name)
        self._around = self._around._replace(window=(await self._app.model.traits()).window)

    def forget(self, wanted: Sequence[int]) -> int:
        """Delete something that is kept for later sessions, by number."""
        return len(Memories(self._app.log.database).delete(wanted))

    async def undo(self, wanted: str) -> UndoReport:
        """Take changes back: a number of actions, "all" of the last request, or "redo"."""
        if wanted == "redo":
            return await self._app.undoing.redo()
        if wanted == "all":
            return await self._app.undoing.undo_request()
        if wanted and not wanted.isdecimal():
            raise UsageError("undo.wanted", wanted=wanted)
        return await self._app.undoing.undo(int(wanted or 1))

    async def diff(self, *, session: bool) -> str:
        """What changed since the last request, or the session, began."""
        return await self._app.undoing.diff("session" if session else "request")
