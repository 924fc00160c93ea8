"""What a session stands on: its log and folder, and what keeps both safe."""

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from duckflow.app.extensions import LoadedExtensions
from duckflow.app.places import COPIES, open_kept_files, open_log
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.config.settings import Settings
from duckflow.domain.errors import UsageError
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.domain.state import AgentState, new_state
from duckflow.evaluation.check_copies import OWN_PROGRAMS, CheckCopies
from duckflow.evaluation.checks import Checks
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.gate import Gate
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.hooks.process import HookShell
from duckflow.loops.session import Pause, Session, go_straight_on
from duckflow.loops.steps import Steps
from duckflow.loops.undo.snapshots import SnapshotLimits, Snapshots
from duckflow.safety.files.boundary import refuse_wide_folder
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.redaction.redactor import Redactor
from duckflow.safety.redaction.values import known_secrets
from duckflow.safety.sandbox.shell import Shell
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import KeptFiles
from duckflow.tools.searching.ripgrep import find_ripgrep


class DurableSession(NamedTuple):
    """How a session is worked on by one process after another: the fleet's way, and by default nobody's."""

    log: SqliteEventLog | None = None
    """Where its events are kept, if not only on this machine."""
    pause: Pause = go_straight_on
    asked: Mapping[str, int] = MappingProxyType({})
    """How often a model was asked for what so far."""


class Foundation(NamedTuple):
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


def open_foundation(
    settings: Settings,
    folder: Path,
    session_id: str | None,
    env: Mapping[str, str],
    extensions: LoadedExtensions,
    durable: DurableSession,
) -> Foundation:
    """Open the log and the folder, and make what keeps both safe. What was opened is closed if that fails."""
    closed = (state_dir(), config_dir(), cache_dir())
    with ExitStack() as opened:
        log = opened.enter_context(closing(durable.log or open_log()))
        kept = opened.enter_context(closing(open_kept_files(settings)))
        refuse_wide_folder(folder, env)
        workspace = opened.enter_context(closing(Workspace(folder, denied=closed)))
        session = _open_session(log, workspace, session_id, Redactor(known_secrets(env)), durable)
        opened.pop_all()
    ripgrep = find_ripgrep(workspace.root)
    limits = SnapshotLimits(files=settings.undo.command_files, size=settings.undo.command_mb * 1_000_000)
    snapshots = Snapshots(workspace, kept, ripgrep, limits)
    open_shell = partial(Shell, settings=settings.shell, closed=closed, env=env, programs=OWN_PROGRAMS)
    shell = open_shell(workspace.root, copies=state_dir() / COPIES)
    return Foundation(
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
            CheckCopies(workspace, shell, open_shell),
            settings.checks,
            lambda name: find_program(name, workspace.root, env),
            extensions.checkers,
        ),
        hooks=Hooks(
            session,
            [hook for listed in extensions.hooks for hook in listed.hooks],
            _hook_shell(workspace.root, env),
        ),
    )


def _open_session(
    log: SqliteEventLog,
    workspace: Workspace,
    session_id: str | None,
    redactor: Redactor,
    durable: DurableSession,
) -> Session:
    if session_id is None:
        return Session(log, new_state(secrets.token_hex(4)), redactor, durable.pause)
    session = Session.load(log, session_id, redactor, durable.pause)
    if durable.log is None:  # else its folder may have another place on each machine
        _check_same_folder(session.state, workspace)
    return session


def _check_same_folder(state: AgentState, workspace: Workspace) -> None:
    if state.workspace and os.path.realpath(state.workspace) != str(workspace.root):
        raise UsageError(
            "session.other_folder", session=state.session_id, folder=state.workspace, here=str(workspace.root)
        )


def _hook_shell(root: Path, env: Mapping[str, str]) -> HookShell:
    """Hooks are programs of ours: from outside the folder, and without keys (SAFETY 18)."""
    shell = find_program("bash", root, env) or find_program("/bin/sh", root, env)
    own = {"CLAUDE_PROJECT_DIR": str(root), "DUCKFLOW_PROJECT_DIR": str(root)}
    return HookShell(shell, str(root), {**program_environment(root, env), **own})
