"""The gate: whether an action may run now, by the policy, and by the user where the policy wants it."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from duckflow.config.settings import GateSettings
from duckflow.domain.approval import Approval, Kind
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.events import ErrorReported
from duckflow.domain.reduce.attempts import digest_of
from duckflow.domain.state import AgentState
from duckflow.loops.acting.calls import (
    ResolvedCall,
    command_of,
    editable,
    handed_over,
    hands_over,
    is_script,
    remembers,
    uses_network,
)
from duckflow.loops.acting.impact import ChangeOutline, alternatives_to, impact_of
from duckflow.safety.files.outside import OutsideFile, find_outside
from duckflow.safety.files.permit import Permit
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.command_risk import Place
from duckflow.safety.policy.policy import Case, Ruling, decide, may_remember
from duckflow.safety.policy.protected import Protection, protection_of, strongest, within
from duckflow.safety.policy.risk import Assessment, Facts, added_text, assess, rate

READS_OUTSIDE = "file_ops.read_file"
"""The one operation that may leave the workspace."""

SAID_NO_BEFORE = (
    "The user said no to exactly this before. Do not try it again: do something else, or say why it matters."
)

_CHANGING = ("write_file", "edit_file", "delete_file", "move_file")
_PLACES: dict[Protection, Place] = {"none": "inside", "asks": "protected", "denied": "own"}
_log = logging.getLogger(__name__)


class _Targets(NamedTuple):
    """Where a call would act: files with their content before, how protected, and how executable."""

    before: dict[str, str | None]
    protection: Protection = "none"
    executable: bool = False
    outside: OutsideFile | None = None


class Gate:
    """Looks at each call before it runs. `sandboxed` says whether commands are kept in by something."""

    def __init__(
        self,
        workspace: Workspace,
        sandboxed: Callable[[], Awaitable[bool]],
        settings: GateSettings,
        *,
        network_open: bool = False,
    ) -> None:
        self._workspace = workspace
        self._sandboxed = sandboxed
        self._settings = settings
        self._network_open = network_open
        self._told = False

    async def notice(self, state: AgentState) -> ErrorReported | None:
        """Said once: that `auto` is not what it says, where there is no sandbox."""
        if self._told or state.mode != "auto" or await self._sandboxed():
            return None
        self._told = True
        return ErrorReported(key="risk.auto_is_edits", notice=True)

    async def question(self, state: AgentState, call: ResolvedCall, objection: str | None) -> Approval | None:
        """The question that must be answered first, if any; Refused where the call may not run at all."""
        if digest_of((call.action,)) in state.refused:
            raise Refused(SAID_NO_BEFORE)
        ground = await asyncio.to_thread(self._look, call)
        case = await self._case(state, call, ground)
        _refuse_denied(decide(state.mode, case))
        difference = "" if call.tool.effect == "read" else await call.tool.preview(call.args)
        if await is_script(call):
            ground = ground._replace(executable=True)
        files = _files_at_once(state, call, ground.before)
        assessed = await asyncio.to_thread(self._assess, call, ground, difference, files)
        case = case.model_copy(update={"risk": assessed.risk})
        kind = _kind(call, case, ground.before, assessed)
        ruling = decide(state.mode, case.model_copy(update={"remembered": kind in state.allowed}))
        _refuse_denied(ruling)
        doubt = objection if call.tool.effect != "read" or hands_over(call) else None
        if ruling.verdict == "allow" and not doubt:
            return None
        if not difference and call.tool.effect in ("write", "delete", "consent"):
            return None  # nothing would change
        if doubt:
            ruling, kind = Ruling(verdict="ask", reason=doubt, because="objection"), None
        outline = _outline(call, ground, assessed, difference).model_copy(
            update={"sandboxed": case.sandboxed, "files_in_all": files}
        )
        approval = _approval(call, ruling, assessed, outline)
        intent = call.action.reasoning or state.last_reply
        asked = {"approval_id": f"p{state.seq + 1}", "intent": intent, "kind": kind}
        return approval.model_copy(update={**asked, "digest": self._digest(approval)})

    async def asks_to_read(self, call: ResolvedCall) -> bool:
        """Whether reading this is for the user to decide: the program itself must not do it either."""
        if call.tool.effect != "read":
            return False
        try:
            ground = await asyncio.to_thread(self._look, call)
        except ToolError:
            return False  # the tool says what is wrong with it
        return ground.protection != "none" or ground.outside is not None

    async def _case(self, state: AgentState, call: ResolvedCall, ground: _Targets) -> Case:
        effect = call.tool.effect
        wanted = effect == "execute" or state.mode == "auto"
        return Case(
            effect=effect,
            risk="forbidden" if ground.outside and ground.outside.closed else "low",
            protection=ground.protection,
            outside=ground.outside is not None,
            sandboxed=wanted and await self._sandboxed(),
        )

    def _look(self, call: ResolvedCall) -> _Targets:
        before: dict[str, str | None] = {}
        protections: list[Protection] = []
        executable = False
        for target in call.tool.targets(call.args):
            try:
                protections.append(self._workspace.protection(target))
            except ToolError:
                outside = self._find_outside(call, target)
                if outside is None:
                    raise
                return _Targets({}, outside=outside)
            path = self._workspace.relative(target, folder=True)
            changes = call.tool.effect != "read" and protections[-1] != "denied"
            there = self._workspace.status(path) if changes else None
            executable = executable or (there is not None and there.executable)
            before[path] = self._workspace.digest(path) if there and there.kind == "file" else None
        return _Targets(before, strongest("none", *protections), executable)

    def _find_outside(self, call: ResolvedCall, target: str) -> OutsideFile | None:
        if call.tool.operation != READS_OUTSIDE:
            return None
        return find_outside(target, self._workspace.root, self._workspace.denied)

    def _assess(self, call: ResolvedCall, ground: _Targets, difference: str, files: int) -> Assessment:
        facts = Facts(
            effect=call.tool.effect,
            paths=(*ground.before, *((ground.outside.real,) if ground.outside else ())),
            protection=ground.protection,
            outside=ground.outside is not None,
            secret_place=ground.outside is not None and ground.outside.closed,
            executable=ground.executable,
            written=added_text(difference) if call.tool.effect == "write" else "",
            many_files=files > self._settings.many_files,
            command=command_of(call),
            network=uses_network(call),
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
        return _PLACES[protection_of(path)]

    def _digest(self, approval: Approval) -> str:
        """Binds an approval to exactly what was shown, where, and to the files as they are."""
        action = approval.action
        bound = [
            action.operation,
            action.args,
            approval.difference,
            str(self._workspace.root),
            approval.before,
            approval.outside,
        ]
        text = json.dumps(bound, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _outline(call: ResolvedCall, ground: _Targets, assessed: Assessment, difference: str) -> ChangeOutline:
    return ChangeOutline(
        effect=call.tool.effect,
        memory=remembers(call),
        before=ground.before,
        difference=difference or handed_over(call),
        outside=ground.outside.real if ground.outside else None,
        reasons=assessed.reasons,
        network=uses_network(call),
        editable=editable(call),
    )


def _approval(call: ResolvedCall, ruling: Ruling, assessed: Assessment, outline: ChangeOutline) -> Approval:
    return Approval(
        approval_id="",
        action=call.action,
        intent="",
        rationale=ruling.reason,
        because=ruling.because,
        risk=assessed.risk,
        reasons=assessed.reasons,
        impact=impact_of(outline),
        alternatives=alternatives_to(outline),
        difference=outline.difference,
        digest="",
        editable=outline.editable,
        before=outline.before,
        outside=outline.outside,
    )


def permit_of(approval: Approval | None) -> Permit | None:
    """What may be changed or read while the approved action runs."""
    return Permit(approval.before, approval.outside) if approval else None


def _refuse_denied(ruling: Ruling) -> None:
    if ruling.verdict == "deny":
        raise Refused(f"not permitted: {ruling.reason}")


def _kind(call: ResolvedCall, case: Case, paths: Iterable[str], assessed: Assessment) -> Kind | None:
    """What "always" would cover; None where every time is to be asked."""
    if not may_remember(case):
        return None
    if call.tool.effect == "execute":
        return Kind(what="command", scope=assessed.first_words) if assessed.first_words else None
    folders = {path.rpartition("/")[0] or "." for path in paths}
    return Kind(what="edits", scope=folders.pop()) if len(folders) == 1 else None


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
