"""A session that is ready to work: its parts, how it begins, how it ends."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckflow.config.places import state_dir
from duckflow.domain.events import ErrorReported, SessionStarted, VerifySet
from duckflow.domain.extensions import Extensions
from duckflow.evaluation.checks import Checks
from duckflow.llm.tiers import Tiers
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.chat import ChatLoop
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.judging.judging import Judging
from duckflow.loops.session import Session
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.advisor import Advisor
from duckflow.loops.thinking.model import DecisionModel
from duckflow.loops.undo.recovery import Recovery, finish_taking_over
from duckflow.loops.undo.snapshots import Snapshots
from duckflow.loops.undo.undo import Undo
from duckflow.safety.files.lock import WorkspaceLock
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.shell import Shell
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import KeptFiles
from duckflow.store.live_file import LiveWriter

if TYPE_CHECKING:
    from duckflow.tools.mcp.servers import McpServers

from duckflow.app.places import COPIES


@dataclass(frozen=True, eq=False, repr=False)
class App:
    """A session that is ready to work."""

    session: Session
    chat: ChatLoop
    judging: Judging
    tasks: TaskLoop
    dispatcher: Dispatcher
    advisor: Advisor
    model: DecisionModel
    tiers: Tiers
    log: SqliteEventLog
    workspace: Workspace
    undoing: Undo
    recovery: Recovery
    snapshots: Snapshots
    kept: KeptFiles
    lock: WorkspaceLock
    shell: Shell
    checks: Checks
    hooks: Hooks
    extensions: Extensions
    mcp: "McpServers | None"
    """The MCP servers, if any are set."""
    live: LiveWriter
    started: SessionStarted
    verify: str
    """The command of the settings whose success requests need; empty for none."""
    problems: tuple[ErrorReported, ...]
    """What the user should know before anything else."""

    def begin(self, *, at_a_pause: bool = False) -> None:
        """Write down that it is open, and what a crash left; left `at_a_pause` it goes on."""
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
        """Give everything back."""
        await self.hooks.aclose()
        await self.judging.aclose()
        await self.tasks.aclose()
        await self.dispatcher.settle_background()
        await self.checks.aclose()
        if self.mcp is not None:
            await self.mcp.aclose()
        await self.shell.aclose()
        await self.tiers.aclose()
        self.live.close()
        self.snapshots.close()
        self.kept.close()
        self.log.close()
        self.workspace.close()
        self.lock.release()
