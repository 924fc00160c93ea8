"""The gate: whether an action may run now, by the policy, and by the user if the policy wants it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from duckflow.config.settings import GateSettings
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.events import ErrorReported
from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.reduce.attempts import digest_of
from duckflow.domain.state import AgentState
from duckflow.loops.acting.approvals import ChangeOutline, ask_about
from duckflow.loops.calls import ResolvedCall
from duckflow.safety.files.outside import OutsideFile, find_outside
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.command_risk import Place, similar_commands
from duckflow.safety.policy.named_files import named_files
from duckflow.safety.policy.policy import PolicyCase, PolicyVerdict, decide, may_remember
from duckflow.safety.policy.protected import (
    Protection,
    is_environment_program,
    protection_of,
    strongest,
    within,
)
from duckflow.safety.policy.risk import ActionFacts, Assessment, added_text, assess, rate
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.tools.catalogue import Proposal

READS_OUTSIDE = "file_ops.read_file"
"""The one operation that may leave the workspace."""

SAID_NO_BEFORE = (
    "The user said no to exactly this before. Do not try it again: do something else, or say why it matters."
)

_CHANGING = ("write_file", "edit_file", "delete_file", "move_file")
_SCRIPT = lazy_regex(r"#!\s*/")
_PLACES: dict[Protection, Place] = {
    "none": "inside",
    "guarded": "protected",
    "asks": "protected",
    "denied": "own",
}
_log = logging.getLogger(__name__)


class _Targets(NamedTuple):
    """Where a call would act: files with their content before, how protected, and how executable."""

    before: dict[str, str | None]
    protection: Protection = "none"
    executable: bool = False
    outside: OutsideFile | None = None


class Gate:
    """Looks at each call before it runs. `sandbox` says what keeps commands in here."""

    def __init__(
        self,
        workspace: Workspace,
        sandbox: Callable[[], Awaitable[Sandbox]],
        settings: GateSettings,
        *,
        network_open: bool = False,
    ) -> None:
        self._workspace = workspace
        self._sandbox = sandbox
        self._settings = settings
        self._network_open = network_open
        self._told = False

    async def notice(self, state: AgentState) -> ErrorReported | None:
        """Said once: that `auto` is not what it says, if commands can't work on a copy."""
        if self._told or state.mode != "auto":
            return None
        sandbox = await self._sandbox()
        if sandbox.copies or sandbox.level == "external":
            return None
        self._told = True
        return ErrorReported(key="risk.auto_is_edits", notice=True)

    async def question(
        self, state: AgentState, call: ResolvedCall, objection: str | None, hooked: str = ""
    ) -> Approval | None:
        """The question that must be answered first, if any; Refused if the call may not run at all.

        `hooked` is why a hook wants it asked.
        """
        if digest_of((call.action,)) in state.refused:
            raise Refused(SAID_NO_BEFORE)
        targets = await asyncio.to_thread(self._look, call)
        case = await self._case(state, call, targets)
        _refuse_denied(decide(state.mode, case))
        effect, works_on_copy = call.tool.effect, case.copies and call.tool.effect == "execute"
        # What only reads may look at nothing before it is allowed to.
        proposal = Proposal() if effect == "read" else await call.tool.propose(call.args, self._workspace)
        files = _files_at_once(state, call, targets.before)
        if works_on_copy:
            assessed = rate(self._wishes(call))
        else:
            assessed = await asyncio.to_thread(self._assess, call, targets, proposal, files)
        case = case._replace(risk=assessed.risk)
        kind = proposal.kind or _kind(effect, targets.before, call.command) if may_remember(case) else None
        ruling = decide(state.mode, case._replace(remembered=kind in state.allowed))
        _refuse_denied(ruling)
        # Of a command that works on a copy, what it did is asked about.
        doubt = objection if not works_on_copy and (effect != "read" or call.handed_over) else None
        if ruling.verdict == "allow" and not doubt and not hooked:
            return None
        if not proposal.difference and effect in ("write", "delete", "consent"):
            return None  # nothing would change
        if doubt:
            ruling, kind = PolicyVerdict(verdict="ask", reason=doubt, because="objection"), None
        elif hooked:
            ruling, kind = PolicyVerdict(verdict="ask", reason=hooked, because="hook"), None
        outline = ChangeOutline(
            effect=effect,
            memory=call.remembers,
            before=targets.before,
            difference=proposal.difference or call.handed_over,
            outside=targets.outside.real if targets.outside else None,
            reasons=assessed.reasons,
            network=call.network,
            secrets=call.secrets,
            editable=proposal.content is not None,
            sandboxed=case.sandboxed and not case.external,
            on_copy=case.copies,
            files_in_all=files,
            foreign=proposal.impact,
            scripts=await asyncio.to_thread(self._scripts, call),
        )
        return ask_about(state, self._workspace.root, call.action, ruling, assessed.risk, outline, kind)

    def _wishes(self, call: ResolvedCall) -> Iterator[str]:
        """What a command asks for before it runs on its copy."""
        yield "looks"
        if call.network and not self._network_open:
            yield "network"
        if call.secrets:
            yield "secrets"

    def _scripts(self, call: ResolvedCall) -> dict[str, str]:
        """What the files that a command names hold now: a yes is to a script as it was."""
        found: dict[str, str] = {}
        for path in named_files(call.command or ""):
            with suppress(ToolError):
                there = self._workspace.status(path)
                if there is not None and there.kind == "file":
                    found[path] = self._workspace.digest(path) or ""
        return found

    async def asks_to_read(self, call: ResolvedCall) -> bool:
        """Whether reading this is for the user to decide: the program itself must not do it either."""
        if call.tool.effect != "read":
            return False
        try:
            targets = await asyncio.to_thread(self._look, call)
        except ToolError:
            return False  # the tool says what is wrong with it
        return targets.protection in ("asks", "denied") or targets.outside is not None

    async def _case(self, state: AgentState, call: ResolvedCall, targets: _Targets) -> PolicyCase:
        effect = call.tool.effect
        # What is not needed to decide is not tried: the first time takes a moment.
        sandbox = await self._sandbox() if effect == "execute" or state.mode == "auto" else None
        return PolicyCase(
            effect=effect,
            risk="forbidden" if targets.outside and targets.outside.closed else "low",
            protection=targets.protection,
            outside=targets.outside is not None,
            sandboxed=sandbox is not None and sandbox.level != "none",
            copies=sandbox is not None and sandbox.copies,
            external=sandbox is not None and sandbox.level == "external",
        )

    def _look(self, call: ResolvedCall) -> _Targets:
        before: dict[str, str | None] = {}
        protections: list[Protection] = []
        executable = False
        for target in call.tool.targets(call.args):
            try:
                protections.append(self._workspace.protection(target))
            except ToolError:
                reads = call.tool.operation == READS_OUTSIDE
                outside = (
                    find_outside(target, self._workspace.root, self._workspace.denied) if reads else None
                )
                if outside is None:
                    raise
                return _Targets({}, outside=outside)
            path = self._workspace.relative(target, folder=True)
            changes = call.tool.effect != "read" and protections[-1] != "denied"
            there = self._workspace.status(path) if changes else None
            executable = executable or (there is not None and there.executable)
            before[path] = self._workspace.digest(path) if there and there.kind == "file" else None
        return _Targets(before, strongest("none", *protections), executable)

    def _assess(self, call: ResolvedCall, targets: _Targets, proposal: Proposal, files: int) -> Assessment:
        facts = ActionFacts(
            effect=call.tool.effect,
            paths=(*targets.before, *((targets.outside.real,) if targets.outside else ())),
            protection=targets.protection,
            outside=targets.outside is not None,
            secret_place=targets.outside is not None and targets.outside.closed,
            executable=targets.executable or _SCRIPT.match(proposal.content or "") is not None,
            written=added_text(proposal.difference) if call.tool.effect == "write" else "",
            many_files=files > self._settings.many_files,
            command=call.command,
            network=call.network,
            network_open=self._network_open,
        )
        try:
            return assess(facts, self._place_of, self._settings.large_bytes)
        except Exception:  # noqa: BLE001 - what can't be judged is asked about, whatever the fault (SAFETY 1)
            _log.exception("the risk of %s could not be told", call.action.operation)
            return rate(("unclear",))

    def _place_of(self, path: str) -> Place:
        """Where a word of a command would lead, by its name alone."""
        root = str(self._workspace.root)
        if path.startswith("~") or ".." in path.split("/"):
            return "outside"
        if path.startswith("/"):
            if any(within(path, folder) for folder in self._workspace.denied):
                return "own"
            if not within(path, root):
                return "outside"
            path = path[len(root) :]
        if is_environment_program(path):
            return "inside"  # to run one is ordinary; to change one shows in what the command did
        return _PLACES[protection_of(path)]


def _refuse_denied(ruling: PolicyVerdict) -> None:
    if ruling.verdict == "deny":
        raise Refused(f"not permitted: {ruling.reason}")


def _kind(effect: ToolEffect, paths: Iterable[str], command: str | None) -> ApprovalScope | None:
    """What "always" would cover, if the tool itself does not say; None if it must be asked every time."""
    if effect == "execute":
        return similar_commands(command or "")
    if effect in ("foreign", "fetch"):
        return None
    folders = {path.rpartition("/")[0] or "." for path in paths}
    return ApprovalScope(what="edits", scope=folders.pop()) if len(folders) == 1 else None


def _files_at_once(state: AgentState, call: ResolvedCall, touched: Iterable[str]) -> int:
    """How many files change before somebody looks again: since the last yes, and in the rest of the list."""
    if call.tool.effect not in ("write", "delete") or state.list_granted:
        return 0
    waiting: list[tuple[str, object]] = [(one.operation, one.args.get("path")) for one in state.queue]
    if state.task_list is not None and not state.task_list.ended:
        tasks = (task for task in state.task_list.tasks if task.status == "pending")
        waiting += [(task.operation, task.args.get("path")) for task in tasks]
    listed = {str(path) for operation, path in waiting if operation.rpartition(".")[2] in _CHANGING}
    return len({*state.unseen, *listed, *touched})
