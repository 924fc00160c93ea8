"""App: the only place that wires the parts of a session together."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from duckflow.agents.review import REVIEW
from duckflow.agents.team import CHECK_FOUND
from duckflow.app.extensions import load_extensions
from duckflow.app.models import choose, open_models, unknown_prices
from duckflow.app.opening import Opening
from duckflow.app.places import COPIES, LIVE, LOCKS
from duckflow.app.resources import SessionResources
from duckflow.app.team import is_agent, reviews, rules_outside, team_tools
from duckflow.config.files.markdown import AGENTS_FOLDER, COMMANDS_FOLDER, read_agents, read_commands
from duckflow.config.places import closed_dirs, config_dir, state_dir
from duckflow.config.settings import Settings
from duckflow.config.version import __version__
from duckflow.dialects.drafts import DraftLimits
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.events import SessionStarted, VerifySet
from duckflow.domain.extensions import Extensions
from duckflow.domain.questions.approval import allowed_hosts
from duckflow.domain.work.plan import Plan, PlanStep, Task
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.llm.default_model import ModelChoice
from duckflow.loops.acting.action_log import ActionLog
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.acting.runner import ActionRunner
from duckflow.loops.chat import ChatLoop
from duckflow.loops.judging.answers import UserAnswers
from duckflow.loops.judging.case_evidence import CaseEvidenceCollector, written_files
from duckflow.loops.judging.judging import Judging
from duckflow.loops.judging.verification import Verification
from duckflow.loops.pacing import Pacing
from duckflow.loops.session import Session, Subscriber
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.memory import SessionMemory
from duckflow.loops.thinking.messages import MessageReader
from duckflow.loops.thinking.model import DecisionModel, Dialects, operations_of
from duckflow.loops.thinking.rules import RulesFiles
from duckflow.loops.thinking.small_models import WorkspaceLook
from duckflow.loops.turn import Turn
from duckflow.loops.undo.differences import Differences
from duckflow.loops.undo.operation import undo_tools
from duckflow.loops.undo.recovery import finish_applying, give_back_saves, recover
from duckflow.loops.undo.undo import Undo
from duckflow.prompts.evidence import evidence_in
from duckflow.prompts.questions import summary_of
from duckflow.safety.files.lock import WorkspaceLock
from duckflow.services.plans import draft_plan
from duckflow.services.task_lists import draft_tasks
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.live_file import LiveWriter, live_path
from duckflow.store.memory import Memories
from duckflow.store.outcome_stats import loops_used
from duckflow.store.sessions import Sessions
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.files.unsaved import with_unsaved
from duckflow.tools.memory import memory_tools
from duckflow.tools.plans.plan_tool import plan_tools
from duckflow.tools.plans.task_lists import task_tools
from duckflow.tools.shell import background_tools, shell_tools
from duckflow.tools.skills import find_skills, skill_tools
from duckflow.tools.toolset import file_tools, mcp_servers, page_tools

TRACES = "traces.jsonl"


class App:
    """The parts of a session, wired together only here; `begin` starts it."""

    def __init__(self, opening: Opening, choice: ModelChoice, env: Mapping[str, str]) -> None:
        settings, project = opening.loaded.settings, opening.loaded.project
        extensions = load_extensions(settings, opening.folder, project)
        closing = AsyncExitStack()
        base = SessionResources(opening, env, extensions, closing)
        session, workspace = base.session, base.workspace
        self.session, self.workspace, self.log, self.kept = session, workspace, base.log, base.kept
        self.shell, self._hooks, self._closing = base.shell, base.hooks, closing
        self.grants, self.code = base.grants, base.code
        plugins = extensions.plugins.together
        self.tiers, self.advisor = open_models(
            opening, choice, session, workspace, base.kept, env, plugins.providers
        )
        closing.push_async_callback(self.tiers.aclose)
        named = settings.rules
        self.rules = rules = RulesFiles(workspace, named.files, named.max_bytes, rules_outside(env))
        look = WorkspaceLook(workspace, base.checks)
        clean, closed = session.redactor.clean, closed_dirs()
        self.mcp = mcp_servers(settings, workspace.root, closed, env, clean)
        files = file_tools(base.ripgrep)
        if opening.unsaved:
            files = tuple(with_unsaved(tool, opening.unsaved) for tool in files)
        base.deletions.is_small = partial(self.advisor.is_small, "creative")
        base.shell.contacted = session.record
        base.shell.granted = lambda: allowed_hosts((*session.state.allowed, *base.grants.kinds()))
        commands = (*shell_tools(base.shell, session.show), *background_tools(base.shell))
        background = Catalogue((*files, *commands, *plugins.operations), self.mcp)
        self.tasks = TaskLoop(session, make_dispatcher(base, background), self.advisor)

        async def plan(goal: str) -> Plan:
            known = summary_of(session.state), evidence_in(session.state)
            return await self.advisor.ask(draft_plan(goal, *known), session.show)

        async def tasks_of(plan: Plan, step: PlanStep) -> tuple[Task, ...]:
            state, offered = session.state, operations_of(background)
            known = *evidence_in(state), *await asyncio.to_thread(written_files, state, workspace)
            question = draft_tasks(plan, step, summary_of(state), known, offered, background.validate)
            return await self.advisor.ask(question)

        plans = plan_tools(session, plan)
        lists = task_tools(session, tasks_of, self.tasks, background)
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path's own can raise
        skills = find_skills(workspace, home) if settings.skills.enabled else ()
        reading = skill_tools(skills, workspace, home, settings.skills.prompt_tokens)
        remembering = memory_tools(str(workspace.root), clean) if settings.memory.enabled else ()
        agents = read_agents((home / ".claude/agents", config_dir() / AGENTS_FOLDER), project)
        self._reviewed: dict[str, bytes | None] = {}
        team = team_tools(base, opening, (self.tiers, self.advisor), env, agents, self._reviewed)
        pages = page_tools(settings, env, lambda: self.tiers.name("creative"), clean)
        self.undoing = Undo(session, workspace, base.kept, base.log)
        undoing = () if is_agent(env) else undo_tools(session, self.undoing)
        others = (*base.code.tools(), *plans, *lists, *team, *remembering, *undoing, *reading, *pages)
        catalogue = Catalogue((*background.fixed, *others), self.mcp)
        limits = DraftLimits(most=settings.llm.candidates)
        dialects = Dialects(catalogue, look, rules, limits, base.shell)
        self.model = model = DecisionModel(session, self.tiers, self.advisor, dialects)
        self.dispatcher = dispatcher = make_dispatcher(base, catalogue)
        steps, hooks, database = base.steps, base.hooks, base.log.database
        pacing = Pacing(session, settings.duck_pacemaker, model.traits, partial(loops_used, database))
        collector = CaseEvidenceCollector(
            session, workspace, Differences(workspace, base.kept), base.checks, base.code
        )
        tests = ProjectTests(workspace) if opening.attended or CHECK_FOUND in env else None
        verifying = Verification(session, dispatcher, collector, tests)
        most = settings.evaluation.max_iterations
        judging = Judging(session, self.advisor, verifying, collector, most, not reviews(env))
        reader = MessageReader(session, hooks, workspace, look, model, dispatcher)
        turn = Turn(session, reader, model, dispatcher, pacing, judging, steps, hooks)
        memory = SessionMemory(session, Memories(database), model.traits, settings.memory.enabled)
        answers = UserAnswers(session, dispatcher, self.advisor, steps, pacing)
        self.chat = ChatLoop(session, turn, answers, reader, dispatcher, memory, self.tasks)
        live = LiveWriter(live_path(state_dir() / LIVE, session.state.session_id))
        session.subscribe(live)
        closing.callback(live.close)
        if self.mcp is not None:
            closing.push_async_callback(self.mcp.aclose)
        for close in (dispatcher.settle_background, self.tasks.aclose, judging.aclose, hooks.aclose):
            closing.push_async_callback(close)
        self.extensions = Extensions(
            hooks=extensions.hooks,
            plugins=extensions.plugins.facts,
            skills=skills,
            commands=read_commands((home / ".claude/commands", config_dir() / COMMANDS_FOLDER), project),
            agents=agents,
        )
        self.problems = (*database.notices, *rules.now.problems, *extensions.plugins.problems)
        self.started = _started(opening, choice, session, base.log)
        self.reads_only = opening.reads_only
        self._verify = settings.evaluation.verify.strip()
        self._lock = WorkspaceLock(state_dir() / LOCKS, workspace.identity)

    def begin(self, *, at_a_pause: bool = False) -> None:
        """Record that the session is open, and recover from a crash unless it was left `at_a_pause`."""
        session_id = self.session.state.session_id
        killed = "" if self.reads_only else self._lock.take(session_id, str(self.workspace.root))
        self.session.record(self.started, *self.problems)
        if self._verify and self.session.state.verify is None:
            self.session.record(VerifySet(command=self._verify))
        if killed:
            give_back_saves(killed, self.workspace, self.kept)
        if not self.reads_only:  # another session may be applying changes right now
            finish_applying(state_dir() / COPIES, self.workspace, self.kept)
        self._hooks.start(resumed=self.started.resumed)
        state = self.session.state
        if not at_a_pause or state.running or state.task_running or state.background_runs:
            self.tasks.recover(recover(self.session, self.workspace, self.kept, self.log))

    async def review(self, changes: str, patch: bytes | None) -> None:
        """Review changes for the user; `patch` is the content of a patch that has this name."""
        from duckflow.agents.changes import read_patch  # noqa: PLC0415 - not for other requests

        self._reviewed[changes] = read_patch(self.workspace.root, changes) if patch is None else patch
        action = Action(operation=REVIEW, args={"changes": changes}, reasoning="the user asked for it")
        try:
            await self.dispatcher.run_now([action], by_user=True)
        except ToolError:
            self.session.notify("review.switched_off")
        finally:
            self._reviewed.clear()

    async def aclose(self) -> None:
        """Stop everything and release all resources."""
        await self._closing.aclose()
        self._lock.release()


async def open_app(opening: Opening, *listeners: Subscriber) -> App:
    """Open and begin a new or earlier session; the listeners get every update.

    UserError if its folder is in use or, with `model_first`, no model answers.
    """
    settings = opening.loaded.settings
    app = App(opening, await choose(settings, os.environ), os.environ)
    try:
        if opening.model_first:
            await app.model.traits()
        for listener in (*listeners, *_tracing(settings)):
            app.session.subscribe(listener)
        app.begin(at_a_pause=opening.log is not None)
        app.session.record(*await unknown_prices(app.tiers, settings, os.environ))
        if opening.verify is not None:
            app.session.record(VerifySet(command=opening.verify.strip()))
    except BaseException:
        await app.aclose()
        raise
    return app


def _tracing(settings: Settings) -> Sequence[Subscriber]:
    if not settings.tracing.enabled:
        return ()
    if find_spec("opentelemetry.sdk") is None:
        raise UsageError("tracing.not_installed")
    from duckflow.ui.tracing import SpanWriter, file_tracer  # noqa: PLC0415 - heavy, and rarely wanted

    return (SpanWriter(file_tracer(state_dir() / TRACES)),)


def make_dispatcher(base: SessionResources, catalogue: Catalogue) -> Dispatcher:
    """Return a dispatcher for the operations of a catalogue."""
    log = ActionLog(base.session, base.workspace, base.kept, catalogue)
    runner = ActionRunner(base.session, log, base.effects, base.snapshots, base.checks, base.code, base.hooks)
    return Dispatcher(base.session, catalogue, base.gate, base.effects, base.steps, base.hooks, runner)


def _started(opening: Opening, choice: ModelChoice, session: Session, log: SqliteEventLog) -> SessionStarted:
    settings, state = opening.loaded.settings, session.state
    resumed = state.seq > 0
    # A mode that only an unattended run was given is not for a session with a user.
    keeps_mode = resumed and opening.keeps_mode and (state.attended or not opening.attended)
    earlier = Sessions(log.database).find(state.session_id) if resumed else None
    return SessionStarted(
        session_id=state.session_id,
        workspace=os.path.realpath(opening.folder),
        model=choice.name,
        model_reason=choice.reason_key,
        model_values=dict(choice.values),
        mode="plan" if opening.reads_only else state.mode if keeps_mode else settings.mode,
        version=__version__,
        resumed=resumed,
        title=earlier.title if earlier else "",
        last_used=earlier.updated.isoformat() if earlier else "",
        attended=opening.attended,
        effort=state.effort if state.effort_chosen else settings.llm.effort,
    )
