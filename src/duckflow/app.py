"""build(...): the only place that wires objects together."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckflow
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.config.settings import Settings
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ErrorReported, SessionStarted
from duckflow.domain.model import Usage
from duckflow.domain.ports import ModelClient
from duckflow.domain.state import AgentState
from duckflow.llm.choice import Choice, choose_model
from duckflow.llm.pricing import cost_usd
from duckflow.llm.providers import open_client
from duckflow.llm.relay import Relay
from duckflow.llm.tiers import Tiers, tier_names
from duckflow.loops.chat import ChatLoop
from duckflow.loops.dispatcher import Dispatcher
from duckflow.loops.evidence import changed_files
from duckflow.loops.model_use import ModelInUse, operations_of
from duckflow.loops.planning import Planning
from duckflow.loops.rails import WorkspaceLook
from duckflow.loops.rules import read_rules
from duckflow.loops.session import Session
from duckflow.loops.spending import Spending
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.turn import Limits, Turn
from duckflow.prompts.budget import PromptFrame
from duckflow.safety.workspace import Workspace
from duckflow.store.event_log import SqliteEventLog
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.files import file_tools
from duckflow.tools.plans import plan_tools
from duckflow.tools.task_lists import task_tools

DATABASE = "duckflow.db"


@dataclass(frozen=True)
class App:
    """A session that is ready to work."""

    session: Session
    chat: ChatLoop
    tasks: TaskLoop
    model: ModelInUse
    tiers: Tiers
    log: SqliteEventLog
    workspace: Workspace
    started: SessionStarted
    problems: tuple[ErrorReported, ...]
    """What the user should know before anything else."""

    def begin(self) -> None:
        """Write down that the session is open, and what a crash left behind. Subscribe before this."""
        self.session.record(self.started, *self.problems)
        self.session.recover()
        self.tasks.recover()

    async def aclose(self) -> None:
        """Give everything back."""
        await self.tasks.aclose()
        await self.tiers.aclose()
        self.log.close()
        self.workspace.close()


async def choose(settings: Settings, env: Mapping[str, str]) -> Choice:
    """The model to think with, and why that one."""
    named = settings.llm.creative or settings.llm.model
    if named:
        return Choice(name=named, reason_key="llm.chosen_by_setting")
    return await choose_model(env)


def open_log() -> SqliteEventLog:
    """The event log in the user's state directory."""
    return SqliteEventLog(state_dir() / DATABASE)


def build(
    settings: Settings,
    choice: Choice,
    folder: Path,
    session_id: str | None,
    env: Mapping[str, str],
    relay: Relay | None = None,
) -> App:
    """A session in a folder, new or taken up again, with all that it needs."""
    log = open_log()
    workspace = Workspace(folder, denied=(state_dir(), config_dir(), cache_dir()))
    session = _open_session(log, workspace, session_id)

    async def opened(name: str) -> ModelClient:
        return await open_client(name, settings.llm, env, relay)

    async def price(name: str, usage: Usage) -> float | None:
        return await cost_usd(name, usage, env)

    tiers = Tiers(tier_names(settings.llm, choice.name), opened)
    spending = Spending(session, tiers, price)
    rules = read_rules(workspace, settings.rules.files, settings.rules.max_bytes)
    look = WorkspaceLook(workspace)
    background = Catalogue(file_tools(workspace))
    planning = Planning(session, tiers, spending, operations_of(background))
    tasks = TaskLoop(session, Dispatcher(session, background, workspace), planning.report)
    plans = plan_tools(session.current, planning.plan)
    lists = task_tools(session.current, planning.tasks, tasks.start, tasks.cancel, background)
    catalogue = Catalogue((*background.tools, *plans, *lists))
    frame = PromptFrame(rules=rules.text, budgets=settings.prompt)
    model = ModelInUse(session, tiers, catalogue, look, frame, spending)
    dispatcher = Dispatcher(session, catalogue, workspace)
    limits = Limits(
        max_loops=settings.duck_pacemaker.dynamic_limits.max_loops, transitions=settings.transitions
    )
    turn = Turn(session, model, dispatcher, partial(changed_files, workspace=workspace), limits)
    return App(
        session=session,
        chat=ChatLoop(session, turn, dispatcher, look, model, tasks),
        tasks=tasks,
        model=model,
        tiers=tiers,
        log=log,
        workspace=workspace,
        problems=(*log.database.notices, *rules.problems),
        started=SessionStarted(
            session_id=session.state.session_id,
            workspace=str(workspace.root),
            model=choice.name,
            model_reason=choice.reason_key,
            model_values=dict(choice.values),
            mode=settings.mode,
            version=duckflow.__version__,
            resumed=session_id is not None,
        ),
    )


def _open_session(log: SqliteEventLog, workspace: Workspace, session_id: str | None) -> Session:
    if session_id is None:
        return Session(log, AgentState(session_id=secrets.token_hex(4)))
    session = Session.load(log, session_id)
    _check_same_folder(session.state, workspace)
    return session


def _check_same_folder(state: AgentState, workspace: Workspace) -> None:
    if state.workspace and os.path.realpath(state.workspace) != str(workspace.root):
        raise UsageError(
            "session.other_folder", session=state.session_id, folder=state.workspace, here=str(workspace.root)
        )
