"""The engine as the conversation sees it: the port of `ui/engine.py`, over the parts of the app."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from duckflow.app.app import App
from duckflow.config.loading import LoadedSettings, rows
from duckflow.domain.decision import Action
from duckflow.domain.errors import ProviderError, ToolError, UsageError
from duckflow.domain.events import EffortChanged, ModeChanged, SessionTitled
from duckflow.domain.extensions import ServerReport
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.model import EffortChoice, PromptUse
from duckflow.domain.modes import Mode
from duckflow.domain.state import AgentState
from duckflow.domain.work.memory import Memory
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.loops.undo.rewind import Rewind, fork
from duckflow.safety.files.listing import SKIPPED
from duckflow.services.titles import write_title
from duckflow.store.memory import Memories
from duckflow.store.sessions import Sessions
from duckflow.ui.engine import EarlierSession, Surroundings

_MOST_FILES = 5_000
_DEPTH = 8
_COMMAND = "shell.run"


class ChatEngine:
    """The work, what there is to list and to suggest, and what the commands of the conversation change."""

    def __init__(self, app: App, loaded: LoadedSettings) -> None:
        self._app = app
        self._loaded = loaded
        self._files: Sequence[str] = ()
        self._titled = False
        self._behind: set[asyncio.Task[None]] = set()
        self.around = Surroundings()
        self.answer = app.chat.answer
        self.proposal = app.chat.proposal
        self.choose = app.chat.choose
        self.go_on = app.chat.go_on
        self.rate = app.chat.rate
        self.cancel_tasks = app.tasks.cancel
        going_back = Rewind(app.session, app.log, app.undoing)
        self.messages = going_back.messages
        self.rewind = going_back.back_to
        self.stop_commands = app.chat.stop_commands
        self.extensions = app.extensions

    @property
    def state(self) -> AgentState:
        """The newest state."""
        return self._app.session.state

    async def warm(self, changed: Callable[[], None]) -> None:
        """Behind the prompt: open the model, try the sandbox, look at the files."""
        self.around = self.around._replace(sandbox=(await self._app.shell.sandbox()).level)
        await self._look()
        changed()
        if self._app.mcp is not None:
            await self._app.mcp.ready()
        await self._app.model.warm()
        try:
            traits = await self._app.model.traits()
        except ProviderError:
            return  # the first message meets the same error, and tells it
        self.around = self.around._replace(window=traits.window)
        changed()

    async def say(self, said: str) -> RequestOutcome:
        """Work on a message; afterwards there may be other files, and something to name the session after."""
        outcome = await self._app.chat.say(said)
        self._later(self._look())
        if self._loaded.settings.ui.titles and outcome == "done":
            self._later(self.give_title())
        return outcome

    async def run_command(self, command: str) -> bool:
        """Run a shell command of the user's own, who needs no permission; False if none can be run."""
        action = Action(operation=_COMMAND, args={"command": command}, reasoning="the user ran it")
        try:
            await self._app.dispatcher.run_now([action], by_user=True)
        except ToolError:
            return False
        return True

    async def give_title(self) -> None:
        """Name the session after the first request that changed or ran something, once."""
        request = self.state.finished
        if self._titled or request is None or not (request.changed or request.ran):
            return
        self._titled = True
        title = await self._app.advisor.ask(write_title(request.text, self.state.reply))
        if title:  # else the list shows the first request, which is as good
            self._app.session.record(SessionTitled(title=title))

    async def aclose(self) -> None:
        """Stop what goes on behind the conversation."""
        for task in self._behind:
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)

    def set_mode(self, mode: Mode) -> None:
        """Ask more, or less, from now on."""
        self._app.session.record(ModeChanged(mode=mode))

    async def set_model(self, name: str) -> None:
        """Think with another model from now on."""
        await self._app.model.change(name)
        self.around = self.around._replace(window=(await self._app.model.traits()).window)

    def set_effort(self, effort: EffortChoice) -> None:
        """Let models think more, or less, from now on."""
        self._app.session.record(EffortChanged(effort=effort))

    async def undo(self, wanted: str) -> UndoReport:
        """Take changes back: a number of actions, "all" of the last request, or "redo"."""
        if wanted == "redo":
            return await self._app.undoing.redo()
        if wanted == "all":
            return await self._app.undoing.undo_request()
        if wanted and not wanted.isdecimal():
            raise UsageError("undo.wanted", wanted=wanted)
        return await self._app.undoing.undo(int(wanted or 1))

    def fork(self, number: int | None) -> str:
        """A new session that begins as this one is, or was before a message; its id."""
        return fork(self._app.log, self.state.session_id, number)

    async def diff(self, *, session: bool) -> str:
        """What changed since the last request, or the session, began."""
        return await self._app.undoing.diff(session=session)

    async def context(self) -> PromptUse:
        """What would be in the prompt now, and what that takes."""
        return await self._app.model.preview(self.state)

    def files(self) -> Sequence[str]:
        """What can be mentioned: the files there are, as last looked at, and resources of MCP servers."""
        return [*self._files, *(f"{one.name}:{uri}" for one in self.servers() for uri in one.resources)]

    def models(self) -> Sequence[str]:
        """Names of models worth suggesting: what is set, what is in use, and what needs no key."""
        llm = self._loaded.settings.llm
        named = (self.state.model, llm.model, llm.creative, llm.fast, llm.evaluator, "embedded", "relay")
        return list(dict.fromkeys(name for name in named if name))

    def sessions(self) -> Sequence[EarlierSession]:
        """Earlier sessions of this folder, the last one first."""
        listed = Sessions(self._app.log.database).listed(str(self._app.workspace.root))
        return [EarlierSession(one.id, one.title, one.updated) for one in listed]

    def memories(self) -> Sequence[Memory]:
        """What is kept for later sessions that counts in this folder, the newest first."""
        return Memories(self._app.log.database).listed(str(self._app.workspace.root))

    def servers(self) -> Sequence[ServerReport]:
        """The MCP servers that are set, and how they are."""
        return self._app.mcp.reports() if self._app.mcp is not None else ()

    async def prompt(self, name: str, argument: str) -> str:
        """The text of a prompt of an MCP server, by `server.name`."""
        server, _, prompt = name.partition(".")
        if self._app.mcp is None:
            raise UsageError("mcp.no_prompt", name=name)
        return await self._app.mcp.prompt(server, prompt, argument)

    def forget(self, wanted: Sequence[int]) -> int:
        """Delete something that is kept for later sessions, by number."""
        return len(Memories(self._app.log.database).delete(wanted))

    def settings(self) -> Sequence[str]:
        """Every setting that is not as it comes, in a line, and where to set more."""
        changed = [row for row in rows(self._loaded) if row.source.kind != "default"]
        lines = [
            f"{row.key} = {row.value}  # {text(f'config.source_{row.source.kind}', where=row.source.where)}"
            for row in changed
        ]
        return [*lines, text("config.more")]

    async def _look(self) -> None:
        """Look at the files there are, for suggestions."""
        try:
            listing = await asyncio.to_thread(
                self._app.workspace.list, ".", depth=_DEPTH, limit=_MOST_FILES, skip=SKIPPED
            )
        except ToolError:
            return
        self._files = [entry.path for entry in listing.entries if entry.kind == "file"]

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
