"""From what is known of a change to the question before it, and to what a yes permits (G1, G5)."""

import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from duckflow.domain.decision import Action
from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine, line
from duckflow.domain.questions.approval import Approval, ApprovalScope, Risk
from duckflow.domain.state import AgentState
from duckflow.safety.files.access import Permit
from duckflow.safety.policy.policy import PolicyVerdict
from duckflow.safety.policy.risk import changed_lines
from duckflow.tools.catalogue import CommandEnd

COMMANDS = ("shell.run", "shell.start")

FIRST_SHOWN = 20
"""Files named one by one; the rest are counted."""


class ChangeOutline(Frozen):
    """What is known of the change."""

    effect: ToolEffect
    memory: Literal["", "here", "everywhere"] = ""
    """Where something would be known in later sessions."""
    before: dict[str, str | None]
    """The files it touches, and what they hold."""
    difference: str = ""
    outside: str | None = None
    reasons: tuple[str, ...] = ()
    network: bool = False
    secrets: tuple[str, ...] = ()
    """Files with secrets that a command would see."""
    sandboxed: bool = False
    files_in_all: int = 0
    """How many files change before somebody looks again."""
    editable: bool = False
    on_copy: bool = False
    """Whether a command would work on a copy."""
    effects: Effects | None = None
    """What a command did to its copy."""
    ended: CommandEnd = "well"
    scripts: dict[str, str] = Field(default_factory=dict[str, str])
    """What the files hold that a command names."""
    foreign: tuple[TextLine, ...] = ()
    """What it does where Duckflow can't look, in the tool's own words."""


def ask_about(
    state: AgentState,
    root: Path,
    action: Action,
    ruling: PolicyVerdict,
    risk: Risk,
    outline: ChangeOutline,
    kind: ApprovalScope | None,
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
        impact=tuple(_impact(outline)),
        alternatives=tuple(map(line, _alternatives(outline))),
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


def _impact(outline: ChangeOutline) -> Iterator[TextLine]:
    """Which files, how many lines, inside or outside, and whether it can be taken back."""
    match outline.effect:
        case "read":
            yield line("approval.impact.reads", path=outline.outside or _some(outline.before))
            yield line("approval.impact.to_model")
        case "consent" if outline.memory:
            yield line(f"approval.impact.memory_{outline.memory}")
            yield line("approval.impact.memory_undo")
        case "consent" if not outline.foreign:
            yield line("approval.impact.plan")
        case "foreign" | "fetch" | "consent":
            yield from outline.foreign
        case "execute" if outline.effects is not None:
            yield from _of_effects(outline.effects, outline.ended)
        case "execute":
            yield from _of_command(outline)
        case _:
            yield from _of_files(outline)
            yield line("approval.impact.undo")


def _of_files(outline: ChangeOutline) -> Iterator[TextLine]:
    lines = changed_lines(outline.difference)
    added = sum(one.startswith("+") for one in lines)
    removed = len(lines) - added
    missing = [path for path, digest in outline.before.items() if digest is None]
    listed = _some(outline.before)
    if outline.effect == "delete":
        yield line("approval.impact.deletes", path=listed, lines=removed)
    elif len(outline.before) > 1:
        yield line("approval.impact.moves", path=listed)
    elif missing:
        yield line("approval.impact.creates", path=missing[0], lines=added)
    else:
        yield line("approval.impact.changes", path=listed, added=added, removed=removed)
    if "many_files" in outline.reasons:
        yield line("approval.impact.in_all", count=outline.files_in_all)


def _of_effects(effects: Effects, ended: CommandEnd) -> Iterator[TextLine]:
    if ended != "well":
        yield line(f"approval.impact.command_{ended}")
    for kinds, key in (
        (("created",), "created"),
        (("changed", "mode", "moved"), "changed"),
        (("deleted",), "deleted"),
    ):
        paths = [one.path for one in effects.effects if one.kind in kinds and one.type != "folder"]
        own = [path for path in paths if ".git" in path.split("/")]
        listed = [path for path in paths if path not in own] or own[:1]
        if paths:
            yield line(f"approval.impact.files_{key}", count=len(paths), paths=_some(listed))
    for bulk in effects.bulk:
        key = "approval.impact.build_folder" if bulk.undoable else "approval.impact.build_folder_not_kept"
        yield line(key, path=bulk.path, count=bulk.files)
    for path in effects.conflicts:
        yield line("approval.impact.overwrites", path=path)
    for dropped in effects.dropped[:FIRST_SHOWN]:
        yield line(f"approval.impact.dropped_{dropped.reason}", path=dropped.path)
    yield line("approval.impact.undo")


def _of_command(outline: ChangeOutline) -> Iterator[TextLine]:
    yield line("approval.impact.in_sandbox" if outline.sandboxed else "approval.impact.no_sandbox")
    yield line("approval.impact.with_network" if outline.network else "approval.impact.no_network")
    if outline.secrets:
        yield line("approval.impact.sees_secrets", paths=_some(outline.secrets))
    yield line("approval.impact.on_copy" if outline.on_copy else "approval.impact.no_undo")


def _some(paths: Collection[str]) -> str:
    more = f" … +{len(paths) - FIRST_SHOWN}" if len(paths) > FIRST_SHOWN else ""
    return ", ".join([*paths][:FIRST_SHOWN]) + more


def _alternatives(outline: ChangeOutline) -> Iterator[str]:
    """What the user can do instead of saying yes, as catalogue keys."""
    if outline.effect == "consent" and not outline.memory and not outline.foreign:
        yield "approval.instead.revise"
        return
    yield "approval.instead.throw_away" if outline.effects is not None else "approval.instead.refuse"
    if outline.editable:
        yield "approval.instead.edit"
    if outline.effect == "read":
        yield "approval.instead.copy"
    if outline.effect == "execute" and outline.effects is None:
        yield "approval.instead.yourself"
    if {"large", "many_files"} & set(outline.reasons):
        yield "approval.instead.smaller"
    if outline.effect not in ("read", "fetch", "consent") or outline.memory:
        yield "approval.instead.plan_mode"
