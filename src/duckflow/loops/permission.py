"""Whether an action may run now: the policy's word, and the user's where the policy wants it."""

import hashlib
import json
from typing import Literal

from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused
from duckflow.domain.frozen import Frozen
from duckflow.domain.state import AgentState, Approval
from duckflow.safety.policy import Effect, decide
from duckflow.safety.protected import Protection, strongest
from duckflow.safety.workspace import Workspace
from duckflow.tools.catalogue import Tool


async def needed_approval(
    state: AgentState, workspace: Workspace, action: Action, tool: Tool, args: Frozen
) -> Approval | None:
    """The question that must be answered first, if any; Refused where the action may not run at all."""
    protections: list[Protection] = [workspace.protection(path) for path in tool.targets(args)]
    protection: Protection = strongest(*protections) if protections else "none"
    ruling = decide(state.mode, tool.effect, protection)
    if ruling.verdict == "deny":
        raise Refused(f"not permitted: {ruling.reason}")
    objection = state.objection if tool.effect != "read" else None
    if ruling.verdict == "allow" and not objection:
        return None
    difference = await tool.preview(args)
    if not difference:
        return None  # nothing would change
    return Approval(
        approval_id=f"p{state.seq + 1}",
        action=action,
        intent=action.reasoning or state.last_reply,
        rationale=objection or ruling.reason,
        because=_because(tool.effect, protection, objects=bool(objection)),
        difference=difference,
        digest=_digest(action, difference, str(workspace.root)),
    )


def _because(
    effect: Effect, protection: Protection, *, objects: bool
) -> Literal["mode", "protected", "objection", "consent"]:
    if objects:
        return "objection"
    if effect == "consent":
        return "consent"
    return "protected" if protection == "asks" else "mode"


def _digest(action: Action, difference: str, root: str) -> str:
    """Binds an approval to exactly what was shown, where."""
    call = json.dumps([action.operation, action.args, difference, root], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()
