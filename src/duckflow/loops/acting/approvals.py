"""From what is known of a change to the question before it, and to what a yes permits (SPEC G1, G5)."""

import hashlib
import json
from pathlib import Path

from duckflow.domain.decision import Action
from duckflow.domain.lines import line
from duckflow.domain.questions.approval import Approval, Kind, Risk
from duckflow.domain.state import AgentState
from duckflow.loops.acting.impact import ChangeOutline, alternatives_to, impact_of
from duckflow.safety.files.access import Permit
from duckflow.safety.policy.policy import Ruling

COMMANDS = ("shell.run", "shell.start")


def ask_about(
    state: AgentState,
    root: Path,
    action: Action,
    ruling: Ruling,
    risk: Risk,
    outline: ChangeOutline,
    kind: Kind | None,
) -> Approval:
    """The question, bound to exactly what it shows."""
    return Approval(
        approval_id=f"p{state.seq + 1}",
        action=action,
        intent=action.reasoning or state.last_reply,
        rationale=ruling.reason,
        because=ruling.because,
        risk=risk,
        reasons=outline.reasons,
        impact=tuple(impact_of(outline)),
        alternatives=tuple(map(line, alternatives_to(outline))),
        difference=outline.difference,
        digest=_digest(root, action, outline),
        kind=kind,
        editable=outline.editable,
        before=outline.before,
        outside=outline.outside,
        folders=tuple(bulk.path for bulk in outline.effects.bulk) if outline.effects else (),
    )


def permit_of(approval: Approval | None) -> Permit | None:
    """What may be changed or read while the approved action runs.

    A yes to a command before it ran says nothing of files: what it did to its copy is judged by itself.
    """
    if approval is not None and approval.action.operation in COMMANDS:
        return None
    return Permit(approval.before, approval.outside, approval.folders) if approval else None


def _digest(root: Path, action: Action, outline: ChangeOutline) -> str:
    """Stands for what was shown, where, for the files as they are, and for all that a command did."""
    bound = [
        action.operation,
        action.args,
        outline.difference,
        str(root),
        outline.before,
        outline.outside,
        outline.scripts,
        outline.effects.model_dump_json() if outline.effects else "",
    ]
    text = json.dumps(bound, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
