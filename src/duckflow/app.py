"""build(...): the only place that wires objects together."""

import os
import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import duckflow
from duckflow.config.hook_files import HOOKS_FILE, parse_hooks, read_hooks
from duckflow.config.markdown_files import COMMANDS_FOLDER, read_commands
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.config.settings import Settings
from duckflow.config.toml_files import parse, read_text
from duckflow.config.trust import PROJECT_HOOKS
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ErrorReported, SessionStarted, VerifySet
from duckflow.domain.extensions import Extensions
from duckflow.domain.hooks import HookList
from duckflow.domain.model import TierName, Usage
from duckflow.domain.ports import ModelClient
from duckflow.domain.programs import find_program, program_environment
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, PlanStep, Task
from duckflow.evaluation.check_room import CheckRoom, check_environment
from duckflow.evaluation.checks import Checks
from duckflow.evaluation.diagnostics import Checker, with_rows
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.llm.default_model import ModelChoice, choose_model
from duckflow.llm.local.prompt_states import forget_sessions
from duckflow.llm.local.relay import Relay
from duckflow.llm.pricing import cost_usd
from duckflow.llm.providers import OpenModel, open_client
from duckflow.llm.tiers import Tiers, tier_names
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.acting.gate import Gate
from duckflow.loops.chat import ChatLoop
from duckflow.loops.clients import Clients
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.hooks.process import HookShell
from duckflow.loops.judging.answers import UserAnswers
from duckflow.loops.judging.judging import Judging
from duckflow.loops.judging.verification import Verification
from duckflow.loops.pacing import Pacing
from duckflow.loops.session import Pause, Session, go_straight_on
from duckflow.loops.steps import Steps
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.advisor import Advisor, Spending
from duckflow.loops.thinking.memory import SessionMemory
from duckflow.loops.thinking.model import ModelInUse, operations_of
from duckflow.loops.thinking.rules import read_rules
from duckflow.loops.thinking.small_models import WorkspaceLook
from duckflow.loops.turn import Turn
from duckflow.loops.undo.earlier import EarlierChanges
from duckflow.loops.undo.recovery import Recovery, finish_taking_over
from duckflow.loops.undo.snapshots import SnapshotLimits, Snapshots
from duckflow.loops.undo.undo import Undo
from duckflow.plugins import Plugins, load_plugins
from duckflow.prompts.plans import evidence_of, summary_of
from duckflow.prompts.templates import check_own_templates
from duckflow.safety.files.boundary import refuse_wide_folder
from duckflow.safety.files.lock import WorkspaceLock
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.redaction.model import redacted
from duckflow.safety.redaction.redactor import Redactor
from duckflow.safety.redaction.values import known_secrets
from duckflow.safety.sandbox.shell import Shell
from duckflow.services.drafts import DraftLimits
from duckflow.services.plans import draft_plan
from duckflow.services.task_lists import draft_tasks
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import KeptFiles
from duckflow.store.live_file import LiveWriter, live_path
from duckflow.store.memory import Memories
from duckflow.store.outcome_stats import Outcomes
from duckflow.tools.background import command_tools
from duckflow.tools.catalogue import Catalogue, Tool
from duckflow.tools.files.operations import file_tools
from duckflow.tools.files.unsaved import Unsaved, beneath_editor
from duckflow.tools.memory import memory_tools
from duckflow.tools.outside import mcp_servers, page_tools
from duckflow.tools.plans.plan_tool import plan_tools
from duckflow.tools.plans.task_lists import task_tools
from duckflow.tools.searching.ripgrep import find_ripgrep
from duckflow.tools.skills import find_skills, skill_tools

if TYPE_CHECKING:
    from duckflow.tools.mcp.operations import McpServers

DATABASE = "duckflow.db"
KEPT_FILES = "undo.db"
LOCKS = "locks"
COPIES = "copies"
LIVE = "live"
CHECKERS_FILE = "checkers.toml"


@dataclass(frozen=True)
class App:
    """A session that is ready to work."""

    session: Session
    chat: ChatLoop
    judging: Judging
    tasks: TaskLoop
    dispatcher: Dispatcher
    advisor: Advisor
    model: ModelInUse
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
    clients: Clients
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
        await self.dispatcher.leave_off()
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


@dataclass(frozen=True)
class Carried:
    """How a session is worked on by one process after another: the fleet's way, and by default nobody's."""

    log: SqliteEventLog | None = None
    """Where its events are kept, if not only on this machine."""
    pause: Pause = go_straight_on
    asked: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often a model was asked for what so far."""


async def choose(settings: Settings, env: Mapping[str, str]) -> ModelChoice:
    """The model to think with, and why that one."""
    named = settings.llm.creative or settings.llm.model
    if named:
        return ModelChoice(name=named, reason_key="llm.chosen_by_setting")
    return await choose_model(env)


async def unknown_prices(
    tiers: Tiers, settings: Settings, env: Mapping[str, str]
) -> tuple[ErrorReported, ...]:
    """That a limit on cost can't hold, for each model whose price nobody knows (SPEC I9)."""
    if settings.duck_pacemaker.budget.max_cost_usd is None:
        return ()
    models = dict.fromkeys(tiers.name(tier) for tier in get_args(TierName))
    unknown = [name for name in models if await cost_usd(name, Usage(input_tokens=1), env) is None]
    return tuple(ErrorReported(key="limit.no_price", values={"model": name}, notice=True) for name in unknown)


def open_log() -> SqliteEventLog:
    """The event log in the user's state directory."""
    return SqliteEventLog(state_dir() / DATABASE)


def open_kept_files(settings: Settings) -> KeptFiles:
    """What files were before they were changed, in the user's state directory."""
    return KeptFiles(state_dir() / KEPT_FILES, settings.undo.max_mb * 1_000_000)


def forget_files(session_id: str) -> None:
    """Drop what was kept of a session for undo, and all that embedded models have read of any session."""
    forget_sessions()
    with closing(KeptFiles(state_dir() / KEPT_FILES, 0)) as kept:
        kept.forget(session_id)


def _snapshot_limits(settings: Settings) -> SnapshotLimits:
    return SnapshotLimits(files=settings.undo.command_files, size=settings.undo.command_mb * 1_000_000)


class _Brought(NamedTuple):
    """What the user, and a project they trust, brought along."""

    hooks: tuple[HookList, ...]
    plugins: Plugins
    checkers: tuple[Checker, ...]


@dataclass(frozen=True)
class _Foundation:
    """What a session stands on: its log and folder, and what keeps both safe."""

    log: SqliteEventLog
    kept: KeptFiles
    workspace: Workspace
    session: Session
    steps: Steps
    ripgrep: Path | None
    snapshots: Snapshots
    shell: Shell
    gate: Gate
    checks: Checks
    effects: CommandEffects
    hooks: Hooks


def build(
    settings: Settings,
    choice: ModelChoice,
    folder: Path,
    session_id: str | None,
    env: Mapping[str, str],
    relay: Relay | None = None,
    *,
    keeps_mode: bool = False,
    unsaved: Unsaved | None = None,
    project: Mapping[str, str] | None = None,
    carried: Carried | None = None,
) -> App:
    """A session in a folder, new or taken up again, with all that it needs.

    `project` is what the folder has that may act, by path, if the user trusts it (`Loaded.project`).

    Where there is a `relay`, somebody is there, who can be asked about the project's own tests, too.
    """
    carried = carried or Carried()
    brought = _bring(settings, folder, project or {})
    ground = _open_ground(settings, folder, session_id, env, brought, carried)
    session, workspace = ground.session, ground.workspace
    plugins = brought.plugins.together
    tiers, spending = _open_models(settings, choice, session, env, relay, carried.asked, plugins.providers)
    rules = read_rules(workspace, settings.rules.files, settings.rules.max_bytes)
    look = WorkspaceLook(workspace, ground.checks)
    clean, closed = session.redactor.clean, (state_dir(), config_dir(), cache_dir())
    mcp = mcp_servers(settings, workspace.root, closed, env, clean)
    files = file_tools(ground.ripgrep)
    files = beneath_editor(files, unsaved) if unsaved else files
    background = Catalogue((*files, *command_tools(ground.shell, session.show), *plugins.operations), mcp)
    advisor = Advisor(tiers, spending)
    tasks = TaskLoop(session, _dispatcher(ground, background), advisor)

    async def plan(goal: str) -> Plan:
        known = summary_of(session.state), evidence_of(session.state)
        return await advisor.ask(draft_plan(goal, *known), session.show)

    async def tasks_of(plan: Plan, step: PlanStep) -> tuple[Task, ...]:
        known = summary_of(session.state), evidence_of(session.state)
        return await advisor.ask(draft_tasks(plan, step, *known, operations_of(background)))

    plans = plan_tools(session.current, plan)
    lists = task_tools(session.current, tasks_of, tasks.start, tasks.cancel, background)
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path's own can raise
    skills = find_skills(workspace, home) if settings.skills.enabled else ()
    reading = skill_tools(skills, workspace, home, settings.skills.prompt_tokens)
    catalogue = Catalogue(
        (
            *background.fixed,
            *plans,
            *lists,
            *_memory_tools(settings, ground),
            *reading,
            *page_tools(settings, clean),
        ),
        mcp,
    )
    limits = DraftLimits(most=settings.llm.candidates, seconds=settings.llm.candidates_time_s)
    model = ModelInUse(session, tiers, catalogue, look, rules, settings.prompt, spending, limits)
    dispatcher = _dispatcher(ground, catalogue)
    pacing = Pacing(session, settings.duck_pacemaker, model.traits, Outcomes(ground.log.database).loops_used)
    verifying = Verification(session, dispatcher, ProjectTests(workspace) if relay else None)
    judging = Judging(session, advisor, workspace, verifying, ground.checks, settings.evaluation)
    turn = Turn(session, model, dispatcher, pacing, judging, verifying, ground.steps, ground.hooks)
    memory = SessionMemory(session, Memories(ground.log.database), settings.memory, model.traits)
    answers = UserAnswers(session, dispatcher, advisor, ground.steps, pacing)
    chat = ChatLoop(
        session, turn, answers, ground.steps, pacing, dispatcher, model, look, memory, tasks, ground.hooks
    )
    live = LiveWriter(live_path(state_dir() / LIVE, session.state.session_id))
    session.subscribe(live)
    return App(
        session=session,
        judging=judging,
        chat=chat,
        tasks=tasks,
        dispatcher=dispatcher,
        advisor=advisor,
        model=model,
        tiers=tiers,
        log=ground.log,
        workspace=workspace,
        undoing=Undo(session, workspace, ground.kept, EarlierChanges(ground.log, str(workspace.root))),
        recovery=Recovery(session, workspace, ground.kept),
        snapshots=ground.snapshots,
        kept=ground.kept,
        lock=WorkspaceLock(state_dir() / LOCKS, workspace.identity),
        shell=ground.shell,
        checks=ground.checks,
        hooks=ground.hooks,
        extensions=Extensions(
            hooks=brought.hooks,
            plugins=brought.plugins.facts,
            skills=skills,
            commands=read_commands(config_dir() / COMMANDS_FOLDER, project or {}),
        ),
        mcp=mcp,
        clients=Clients(session, ground.log.database),
        live=live,
        verify=settings.evaluation.verify,
        problems=(*ground.log.database.notices, *rules.problems, *brought.plugins.problems),
        started=_started(settings, choice, ground, resumed=session.state.seq > 0, keeps_mode=keeps_mode),
    )


def _bring(settings: Settings, folder: Path, project: Mapping[str, str]) -> _Brought:
    """Read and load it all, before anything is opened that would have to be closed."""
    check_own_templates()
    wanted = settings.plugins
    root = Path(os.path.realpath(folder))
    plugins = load_plugins(root, wanted.disabled) if wanted.enabled else Plugins()
    file = config_dir() / CHECKERS_FILE
    own = read_text(file)
    try:
        checkers = with_rows(plugins.together.checks, parse(own, file) if own else {})
    except (TypeError, ValueError) as exc:
        raise UsageError("config.bad_table", path=file, reason=str(exc).replace("\n", " ")) from exc
    return _Brought(_read_hooks(settings, project), plugins, checkers)


def _read_hooks(settings: Settings, project: Mapping[str, str]) -> tuple[HookList, ...]:
    """The user's hooks, then the project's own."""
    if not settings.hooks.enabled:
        return ()
    lists = [read_hooks(path) for path in (config_dir() / HOOKS_FILE, *settings.hooks.files)]
    if PROJECT_HOOKS in project:
        lists.append(parse_hooks(project[PROJECT_HOOKS], PROJECT_HOOKS))
    return tuple(lists)


def _hook_shell(root: Path, env: Mapping[str, str]) -> HookShell:
    """Hooks are programs of ours: from outside the folder, and without keys (SAFETY 18)."""
    shell = find_program("bash", root, env) or find_program("/bin/sh", root, env)
    own = {"CLAUDE_PROJECT_DIR": str(root), "DUCKFLOW_PROJECT_DIR": str(root)}
    return HookShell(shell, str(root), {**program_environment(root, env), **own})


def _open_ground(
    settings: Settings,
    folder: Path,
    session_id: str | None,
    env: Mapping[str, str],
    brought: _Brought,
    carried: Carried,
) -> _Foundation:
    log = carried.log or open_log()
    closed = (state_dir(), config_dir(), cache_dir())
    kept = open_kept_files(settings)
    refuse_wide_folder(folder, env)
    workspace = Workspace(folder, denied=closed)
    session = _open_session(log, workspace, session_id, Redactor(known_secrets(env)), carried)
    ripgrep = find_ripgrep(workspace.root)
    snapshots = Snapshots(workspace, kept, ripgrep, _snapshot_limits(settings))
    shell = Shell(workspace.root, settings.shell, closed=closed, env=env, copies=state_dir() / COPIES)
    own = check_environment(env, workspace.root)
    room = CheckRoom(workspace, lambda copy: Shell(copy, settings.shell, closed=closed, env=own))
    return _Foundation(
        log=log,
        kept=kept,
        workspace=workspace,
        session=session,
        steps=Steps(session, settings.transitions),
        ripgrep=ripgrep,
        snapshots=snapshots,
        shell=shell,
        gate=Gate(workspace, shell.sandbox, settings.gate, network_open=settings.shell.network),
        effects=CommandEffects(shell, workspace, settings.gate),
        checks=Checks(
            room,
            settings.checks,
            lambda name: find_program(name, workspace.root, env),
            brought.checkers,
        ),
        hooks=Hooks(
            session,
            [hook for listed in brought.hooks for hook in listed.hooks],
            _hook_shell(workspace.root, env),
        ),
    )


def _open_models(
    settings: Settings,
    choice: ModelChoice,
    session: Session,
    env: Mapping[str, str],
    relay: Relay | None,
    asked: Mapping[str, int],
    others: Mapping[str, OpenModel],
) -> tuple[Tiers, Spending]:
    """The models of a session, which get to see no secrets, and what they cost."""

    async def opened(name: str) -> ModelClient:
        client = await open_client(name, settings.llm, env, relay, asked, others)
        return redacted(client, session.redactor)

    async def price(name: str, usage: Usage) -> float | None:
        return await cost_usd(name, usage, env)

    tiers = Tiers(tier_names(settings.llm, choice.name), opened, by_task=settings.llm.by_task)
    return tiers, Spending(session, tiers, price)


def _memory_tools(settings: Settings, ground: _Foundation) -> tuple[Tool, ...]:
    if not settings.memory.enabled:
        return ()
    return memory_tools(str(ground.workspace.root), ground.session.redactor.clean)


def _dispatcher(ground: _Foundation, catalogue: Catalogue) -> Dispatcher:
    return Dispatcher(
        ground.session,
        catalogue,
        ground.workspace,
        ground.kept,
        ground.snapshots,
        ground.gate,
        ground.effects,
        ground.steps,
        ground.checks,
        ground.hooks,
    )


def _started(
    settings: Settings, choice: ModelChoice, ground: _Foundation, *, resumed: bool, keeps_mode: bool
) -> SessionStarted:
    return SessionStarted(
        session_id=ground.session.state.session_id,
        workspace=str(ground.workspace.root),
        model=choice.name,
        model_reason=choice.reason_key,
        model_values=dict(choice.values),
        mode=ground.session.state.mode if resumed and keeps_mode else settings.mode,
        version=duckflow.__version__,
        resumed=resumed,
    )


def _open_session(
    log: SqliteEventLog, workspace: Workspace, session_id: str | None, redactor: Redactor, carried: Carried
) -> Session:
    if session_id is None:
        return Session(log, AgentState(session_id=secrets.token_hex(4)), redactor, carried.pause)
    session = Session.load(log, session_id, redactor, carried.pause)
    if carried.log is None:  # else its folder may have another place on each machine
        _check_same_folder(session.state, workspace)
    return session


def _check_same_folder(state: AgentState, workspace: Workspace) -> None:
    if state.workspace and os.path.realpath(state.workspace) != str(workspace.root):
        raise UsageError(
            "session.other_folder", session=state.session_id, folder=state.workspace, here=str(workspace.root)
        )
