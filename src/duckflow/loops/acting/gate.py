"""The gate: decides by the policy whether an action runs, is refused, or needs the user's approval."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from duckflow.config.grants import Grants
from duckflow.config.settings import GateSettings
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.frozen import replace
from duckflow.domain.hosts import covers
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.state import AgentState
from duckflow.loops.acting.approvals import ChangeOutline, ask_about
from duckflow.loops.acting.deletions import UNASKED, Deletions, made_here
from duckflow.loops.acting.file_versions import file_tool_findings
from duckflow.safety.files.outside import OutsideFile, find_outside
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.command_risk import Place, named_files, similar_commands
from duckflow.safety.policy.git_config import GitPlaces
from duckflow.safety.policy.policy import PolicyCase, PolicyVerdict, decide, may_remember
from duckflow.safety.policy.protected import (
    Protection,
    is_environment_program,
    protection_of,
    strongest,
    within,
)
from duckflow.safety.policy.risk import ActionFacts, Assessment, added_text, assess, rate, text_around
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.tools.catalogue import Proposal, ResolvedCall
from duckflow.tools.plans.task_lists import RUN_LIST

_CHANGING = ("write_file", "edit_file", "edit_cell", "delete_file", "move_file")
_SCRIPT = lazy_regex(r"#!\s*/")
_PLACES: dict[Protection, Place] = {
    "none": "inside",
    "guarded": "protected",
    "asks": "protected",
    "denied": "own",
}
_log = logging.getLogger(__name__)


class _Targets(NamedTuple):
    before: dict[str, str | None]
    protection: Protection = "none"
    executable: bool = False
    outside: OutsideFile | None = None


class ReviewedCall(NamedTuple):
    """Call that was reviewed: it may run once the user has approved it, or at once without `approval`."""

    call: ResolvedCall
    approval: Approval | None = None
    proposal: Proposal = Proposal()


@dataclass(eq=False)
class Gate:
    """Reviews each call before it runs. `sandbox` finds the sandbox for commands."""

    _workspace: Workspace
    _sandbox: Callable[[], Awaitable[Sandbox]]
    _settings: GateSettings
    _network_open: bool
    _hosts: Callable[[], Sequence[str]]
    _git: GitPlaces
    _grants: Grants
    _deletions: Deletions
    _told: bool = False
    _shown: ReviewedCall | None = None
    """Last write about which the user was asked."""

    async def notice(self, state: AgentState) -> str | None:
        """Return the key of a notice, once, if mode `auto` must ask because commands can't work on a copy."""
        if self._told or state.mode != "auto":
            return None
        sandbox = await self._sandbox()
        if sandbox.copies or sandbox.level == "external":
            return None
        self._told = True
        return "risk.auto_is_edits"

    async def review(
        self, state: AgentState, call: ResolvedCall, objection: str | None, hooked: str = ""
    ) -> ReviewedCall:
        """Return the call and its question. `hooked` is a hook's reason to ask. Raise Refused if denied."""
        targets = await asyncio.to_thread(self._look, call)
        case = await self._case(state, call, targets)
        _refuse_denied(decide(state.mode, case))
        effect, works_on_copy = call.tool.effect, case.copies and call.tool.effect == "execute"
        proposal = await self._propose(call, targets.before)
        if proposal.hosts:
            granted = self._hosts()
            missing = tuple(one for one in proposal.hosts if not covers(granted, one))
            proposal = proposal._replace(hosts=missing)
        files = _files_at_once(state, call, targets.before)
        if works_on_copy:
            assessed = rate(self._requested_access(proposal))
        else:
            facts = call, targets, proposal, files
            contained = case.external and effect == "execute"
            assessed = await asyncio.to_thread(self._assess, *facts, contained=contained)
        case = case._replace(risk=assessed.risk)
        kind = (
            proposal.kind or _kind(effect, targets.before, proposal.command)
            if may_remember(case) and not proposal.undoes
            else None
        )
        if works_on_copy and proposal.hosts and not proposal.network and not proposal.secrets:
            kind = ApprovalScope(what="hosts", scope=" ".join(proposal.hosts))
        kept = kind is not None and (kind in state.allowed or self._grants.cover(kind))
        ruling = decide(state.mode, case._replace(remembered=proposal.granted or kept))
        _refuse_denied(ruling)
        own = made_here(state)
        lost = (path for path, content in targets.before.items() if content not in own.get(path, ()))
        deletes = effect == "delete" and any(lost)
        if deletes and ruling.verdict == "allow" and await self._deletions.unasked(state):
            ruling, kind = UNASKED, None
        # If a command works on a copy, the user is asked about its effects and not about the command.
        doubt = objection if not works_on_copy and (effect != "read" or proposal.difference) else None
        if doubt or hooked:
            reason = PolicyVerdict(verdict="ask", reason=hooked, because="hook")
            ruling = PolicyVerdict(verdict="ask", reason=doubt, because="objection") if doubt else reason
            kind = None
        unchanged = not proposal.difference and effect in ("write", "delete", "consent")
        if ruling.verdict == "allow" or unchanged:
            return ReviewedCall(call, None, proposal)
        outline = ChangeOutline(
            effect=effect,
            proposal=proposal,
            assessed=assessed,
            before=targets.before,
            outside=targets.outside.real if targets.outside else None,
            sandboxed=case.sandboxed and not case.external,
            on_copy=case.copies,
            files_in_all=files,
            scripts=await asyncio.to_thread(self._scripts, proposal.command or ""),
        )
        asked = ask_about(state, self._workspace.root, call.action, ruling, outline, kind)
        self._shown = ReviewedCall(call, asked, proposal)
        return self._shown

    async def proposal(self, call: ResolvedCall) -> Proposal:
        """Return what a call would change in the current files. Raise ToolError if it is not possible."""
        return await self._propose(call, (await asyncio.to_thread(self._look, call)).before)

    async def _propose(self, call: ResolvedCall, before: dict[str, str | None]) -> Proposal:
        """Return the proposal that the user saw for this call if its files are unchanged, else a new one."""
        if call.tool.effect == "read" and call.tool.operation != RUN_LIST:
            return Proposal()  # must not read anything before it is allowed
        shown = self._shown
        known = shown.approval if shown and shown.proposal.write else None
        if shown and known and (known.action, known.before) == (call.action, before):
            return shown.proposal
        return await call.tool.propose(call.args, self._workspace)

    def _requested_access(self, proposal: Proposal) -> Iterator[str]:
        yield "looks"
        if (proposal.network or proposal.hosts) and not self._network_open:
            yield "network"
        if proposal.secrets:
            yield "secrets"

    def _scripts(self, command: str) -> dict[str, str]:
        """Return the SHA-256 of each file that a command names. An approval covers only this content."""
        found: dict[str, str] = {}
        for path in named_files(command):
            with suppress(ToolError):
                status = self._workspace.status(path)
                if status is not None and status.kind == "file":
                    found[path] = self._workspace.digest(path) or ""
        return found

    async def asks_to_read(self, call: ResolvedCall) -> bool:
        """Return whether a read is protected or outside the workspace, so that only the user can allow it."""
        if call.tool.effect != "read":
            return False
        try:
            targets = await asyncio.to_thread(self._look, call)
        except ToolError:
            return False  # the tool itself reports what is wrong
        return targets.protection in ("asks", "denied") or targets.outside is not None

    async def _case(self, state: AgentState, call: ResolvedCall, targets: _Targets) -> PolicyCase:
        effect = call.tool.effect
        # The sandbox is looked for only if it matters, because finding it takes a moment.
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
                if call.tool.operation != "file_ops.read_file":  # only this may leave the workspace
                    raise
                outside = find_outside(target, self._workspace.root, self._workspace.denied)
                if outside is None:
                    raise
                return _Targets({}, outside=outside)
            path = self._workspace.relative(target, folder=True)
            changes = call.tool.effect != "read" and protections[-1] != "denied"
            status = self._workspace.status(path) if changes else None
            executable = executable or (status is not None and status.executable)
            before[path] = self._workspace.digest(path) if status and status.kind == "file" else None
        return _Targets(before, strongest("none", *protections), executable)

    def _assess(
        self, call: ResolvedCall, targets: _Targets, proposal: Proposal, files: int, *, contained: bool
    ) -> Assessment:
        changes = call.tool.effect in ("write", "delete")
        facts = ActionFacts(
            effect=call.tool.effect,
            paths=(*targets.before, *((targets.outside.real,) if targets.outside else ())),
            protection=targets.protection,
            outside=targets.outside is not None,
            secret_place=targets.outside is not None and targets.outside.closed,
            executable=targets.executable or _SCRIPT.match(proposal.content or "") is not None,
            written=added_text(proposal.difference) if call.tool.effect == "write" else "",
            around=text_around(proposal.difference) if call.tool.effect == "write" else ("", ""),
            many_files=files > self._settings.many_files,
            command=proposal.command,
            network=proposal.network,
            network_open=self._network_open,
            contained=contained,
        )
        try:
            if changes:
                found = file_tool_findings(self._workspace, targets.before, proposal, self._git)
                facts = replace(facts, findings=found)
            return assess(facts, self._place_of, self._settings.large_bytes)
        except Exception:  # noqa: BLE001 - if the rules fail for any reason, the user is asked (SAFETY 1)
            _log.exception("the risk of %s could not be assessed", call.action.operation)
            return rate(("unclear",))

    def _place_of(self, path: str) -> Place:
        """Classify a path in a command by its name alone: outside, Duckflow's own, protected and so on."""
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
            return "inside"  # running it is ordinary; changing it shows in the effects of the command
        return _PLACES[protection_of(path)]


def _refuse_denied(ruling: PolicyVerdict) -> None:
    if ruling.verdict == "deny":
        raise Refused(f"not permitted: {ruling.reason}", ruling.key)


def _kind(effect: ToolEffect, paths: Iterable[str], command: str | None) -> ApprovalScope | None:
    if effect == "execute":
        return similar_commands(command or "")
    if effect in ("foreign", "fetch"):
        return None
    folders = {path.rpartition("/")[0] or "." for path in paths}
    return ApprovalScope(what="edits", scope=folders.pop()) if len(folders) == 1 else None


def _files_at_once(state: AgentState, call: ResolvedCall, touched: Iterable[str]) -> int:
    """Return the number of files that change without the user seeing it: already changed and queued ones."""
    if call.tool.effect not in ("write", "delete") or state.list_granted:
        return 0
    waiting: list[tuple[str, object]] = [(one.operation, one.args.get("path")) for one in state.queue]
    if state.task_list is not None and not state.task_list.ended:
        tasks = (task for task in state.task_list.tasks if task.status == "pending")
        waiting += [(task.operation, task.args.get("path")) for task in tasks]
    listed = {str(path) for operation, path in waiting if operation.rpartition(".")[2] in _CHANGING}
    return len({*state.unseen, *listed, *touched})
