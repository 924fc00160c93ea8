"""A session that is ready to work: its parts, its beginning and its end."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckflow.app.places import COPIES
from duckflow.config.places import state_dir
from duckflow.domain.events import ErrorReported, SessionStarted, VerifySet
from duckflow.domain.extensions import Extensions
from duckflow.llm.tiers import Tiers
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.chat import ChatLoop
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.session import Session
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.advisor import Advisor
from duckflow.loops.thinking.model import DecisionModel
from duckflow.loops.undo.recovery import Recovery, finish_taking_over
from duckflow.loops.undo.undo import Undo
from duckflow.safety.files.lock import WorkspaceLock
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.shell import Shell
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import KeptFiles

if TYPE_CHECKING:
    from duckflow.tools.mcp.servers import McpServers


@dataclass(frozen=True, eq=False, repr=False)
class App:
    """The parts of a session that others use."""

    session: Session
    chat: ChatLoop
    tasks: TaskLoop
    dispatcher: Dispatcher
    advisor: Advisor
    model: DecisionModel
    tiers: Tiers
    log: SqliteEventLog
    workspace: Workspace
    kept: KeptFiles
    undoing: Undo
    recovery: Recovery
    lock: WorkspaceLock
    shell: Shell
    hooks: Hooks
    extensions: Extensions
    mcp: "McpServers | None"
    """The MCP servers, if any are set."""
    started: SessionStarted
    verify: str
    """The command of the settings that must succeed for a request; empty for none."""
    problems: tuple[ErrorReported, ...]
    """Problems that the user is told about first."""
    closing: AsyncExitStack
    """Closes all parts, the last one made first."""

    def begin(self, *, at_a_pause: bool = False) -> None:
        """Record that the session is open, and recover from a crash, unless it was left `at_a_pause`."""
        session_id = self.session.state.session_id
        self.lock.take(session_id, str(self.workspace.root))
        self.session.record(self.started, *self.problems)
        if self.verify.strip() and self.session.state.verify is None:
            self.session.record(VerifySet(command=self.verify.strip()))
        finish_taking_over(state_dir() / COPIES, self.workspace, self.kept)
        self.hooks.start(resumed=self.started.resumed)
        state = self.session.state
        if not at_a_pause or state.running or state.task_running or state.background_runs:
            self.tasks.recover(self.recovery.recover(lambda: self.log.load(session_id)))

    async def aclose(self) -> None:
        """Stop everything and release all resources."""
        await self.closing.aclose()
        self.lock.release()
