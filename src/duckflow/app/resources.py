"""The resources of a session: its log, its folder, and the parts that protect them."""

import os
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack, closing
from functools import partial
from pathlib import Path

from duckflow.app.extensions import LoadedExtensions
from duckflow.app.opening import Opening
from duckflow.app.places import COPIES, open_kept_files, open_log
from duckflow.config.grants import Grants
from duckflow.config.places import checkouts_dir, closed_dirs, data_dirs, state_dir
from duckflow.domain.errors import UsageError
from duckflow.domain.files.programs import find_program, program_environment
from duckflow.evaluation.check_copies import OWN_PROGRAMS, CheckCopies
from duckflow.evaluation.checks import Checks
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.deletions import Deletions
from duckflow.loops.acting.gate import Gate
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.hooks.verdicts import HookShell
from duckflow.loops.session import Session
from duckflow.loops.steps import Steps
from duckflow.loops.undo.snapshots import Snapshots
from duckflow.safety.files.workspace import Workspace, refuse_unsuitable_folder
from duckflow.safety.redaction.redactor import Redactor
from duckflow.safety.redaction.values import known_secrets
from duckflow.safety.sandbox.shell import Shell
from duckflow.store.event_log import SqliteEventLog
from duckflow.tools.code.intelligence import CodeIntelligence
from duckflow.tools.searching.ripgrep import find_ripgrep
from duckflow.tools.skills import user_skills


class SessionResources:
    """The log and the folder of a session, and the parts that protect them; `stack` closes all."""

    def __init__(
        self, opening: Opening, env: Mapping[str, str], extensions: LoadedExtensions, stack: AsyncExitStack
    ) -> None:
        settings = opening.loaded.settings
        closed = closed_dirs()
        with ExitStack() as opened:
            self.log = opened.enter_context(closing(opening.log or open_log()))
            self.kept = opened.enter_context(closing(open_kept_files(settings)))
            refuse_unsuitable_folder(opening.folder, env, (*closed, *data_dirs()), checkouts_dir())
            self.workspace = opened.enter_context(closing(Workspace(opening.folder, denied=closed)))
            redactor = Redactor(known_secrets(env, settings.shell.tokens.values()))
            self.session = _open_session(opening, self.log, self.workspace, redactor)
            stack.enter_context(opened.pop_all())
        root = self.workspace.root
        self.ripgrep = find_ripgrep(root)
        most = settings.undo.command_files, settings.undo.command_mb * 1_000_000
        self.snapshots = Snapshots(self.workspace, self.kept, self.ripgrep, *most)
        stack.callback(self.snapshots.close)
        open_shell = partial(Shell, settings=settings.shell, closed=closed, env=env, programs=OWN_PROGRAMS)
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path's own can raise
        skills = user_skills(home) if settings.skills.enabled else ()
        self.shell = open_shell(root, copies=state_dir() / COPIES, reads=skills)
        stack.push_async_callback(self.shell.aclose)
        self.steps = Steps(self.session, settings.transitions)
        gate = (self.workspace, self.shell.sandbox, settings.gate, settings.shell.network, self.shell.hosts)
        self.grants = Grants(str(root))
        self.deletions = Deletions()
        self.gate = Gate(*gate, self.shell.git_places, self.grants, self.deletions)
        self.effects = CommandEffects(self.shell, self.workspace, settings.gate, self.grants, self.deletions)
        self.check_copies = CheckCopies(self.workspace, self.shell, open_shell)
        self.checks = Checks(
            self.check_copies,
            settings.checks,
            lambda name: find_program(name, root, env),
            extensions.checkers,
        )
        stack.push_async_callback(self.checks.aclose)
        content = self.kept.content
        self.code = CodeIntelligence(self.workspace, settings, closed, env, content, self.ripgrep)
        stack.push_async_callback(self.code.aclose)
        hooks = [hook for listed in extensions.hooks for hook in listed.hooks]
        self.hooks = Hooks(self.session, hooks, _hook_shell(root, env))


def _open_session(opening: Opening, log: SqliteEventLog, workspace: Workspace, redactor: Redactor) -> Session:
    session_id = opening.session_id or secrets.token_hex(4)
    session = Session(log, session_id, redactor, opening.pause)
    folder = session.state.workspace
    # A run of the fleet may have its folder at another path on each machine.
    if opening.log is None and folder and os.path.realpath(folder) != str(workspace.root):
        raise UsageError("session.other_folder", session=session_id, folder=folder, here=str(workspace.root))
    return session


def _hook_shell(root: Path, env: Mapping[str, str]) -> HookShell:
    """Return the shell for hooks: a program from outside the folder, which gets no keys (SAFETY 18)."""
    shell = find_program("bash", root, env) or find_program("/bin/sh", root, env)
    own = {"CLAUDE_PROJECT_DIR": str(root), "DUCKFLOW_PROJECT_DIR": str(root)}
    return HookShell(shell, str(root), {**program_environment(root, env), **own})
