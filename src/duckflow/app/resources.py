"""The resources of a session: its log and folder, and the parts that keep both safe."""

import os
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack, closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from duckflow.app.extensions import LoadedExtensions
from duckflow.app.opening import Opening
from duckflow.app.places import COPIES, open_kept_files, open_log
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.domain.errors import UsageError
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.domain.state import new_state
from duckflow.evaluation.check_copies import OWN_PROGRAMS, CheckCopies
from duckflow.evaluation.checks import Checks
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.gate import Gate
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.hooks.process import HookShell
from duckflow.loops.session import Session
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


class SessionResources(NamedTuple):
    """The log and the folder of a session, and the parts that keep both safe."""

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


def open_resources(
    opening: Opening, env: Mapping[str, str], extensions: LoadedExtensions, closing_stack: AsyncExitStack
) -> SessionResources:
    """Open the log and the folder, and make the parts that keep both safe; the stack will close them."""
    settings = opening.loaded.settings
    closed = (state_dir(), config_dir(), cache_dir())
    with ExitStack() as opened:
        log = opened.enter_context(closing(opening.durable.log or open_log()))
        kept = opened.enter_context(closing(open_kept_files(settings)))
        refuse_wide_folder(opening.folder, env)
        workspace = opened.enter_context(closing(Workspace(opening.folder, denied=closed)))
        session = _open_session(opening, log, workspace, Redactor(known_secrets(env)))
        closing_stack.enter_context(opened.pop_all())
    ripgrep = find_ripgrep(workspace.root)
    limits = SnapshotLimits(files=settings.undo.command_files, size=settings.undo.command_mb * 1_000_000)
    snapshots = Snapshots(workspace, kept, ripgrep, limits)
    closing_stack.callback(snapshots.close)
    open_shell = partial(Shell, settings=settings.shell, closed=closed, env=env, programs=OWN_PROGRAMS)
    shell = open_shell(workspace.root, copies=state_dir() / COPIES)
    closing_stack.push_async_callback(shell.aclose)
    checks = Checks(
        CheckCopies(workspace, shell, open_shell),
        settings.checks,
        lambda name: find_program(name, workspace.root, env),
        extensions.checkers,
    )
    closing_stack.push_async_callback(checks.aclose)
    hooks = [hook for listed in extensions.hooks for hook in listed.hooks]
    return SessionResources(
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
        checks=checks,
        hooks=Hooks(session, hooks, _hook_shell(workspace.root, env)),
    )


def _open_session(opening: Opening, log: SqliteEventLog, workspace: Workspace, redactor: Redactor) -> Session:
    durable, session_id = opening.durable, opening.session_id
    if session_id is None:
        return Session(log, new_state(secrets.token_hex(4)), redactor, durable.pause)
    session = Session.load(log, session_id, redactor, durable.pause)
    folder = session.state.workspace
    # A run of the fleet may have its folder at another path on each machine.
    if durable.log is None and folder and os.path.realpath(folder) != str(workspace.root):
        raise UsageError("session.other_folder", session=session_id, folder=folder, here=str(workspace.root))
    return session


def _hook_shell(root: Path, env: Mapping[str, str]) -> HookShell:
    """Return the shell for hooks: a program from outside the folder, which gets no keys (SAFETY 18)."""
    shell = find_program("bash", root, env) or find_program("/bin/sh", root, env)
    own = {"CLAUDE_PROJECT_DIR": str(root), "DUCKFLOW_PROJECT_DIR": str(root)}
    return HookShell(shell, str(root), {**program_environment(root, env), **own})
