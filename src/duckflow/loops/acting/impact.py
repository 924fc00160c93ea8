"""What a change would do, and what else could be done, told as catalogue keys and values (SPEC G1)."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.domain.questions.approval import ApprovalLine
from duckflow.safety.policy.risk import changed_lines
from duckflow.tools.catalogue import CommandEnd

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
    foreign: tuple[ApprovalLine, ...] = ()
    """What it does where Duckflow can't look, in the tool's own words."""


def impact_of(outline: ChangeOutline) -> tuple[ApprovalLine, ...]:
    """Which files, how many lines, inside or outside, and whether it can be taken back."""
    return tuple(_impact(outline))


def alternatives_to(outline: ChangeOutline) -> tuple[ApprovalLine, ...]:
    """What the user can do instead of saying yes."""
    return tuple(ApprovalLine(key=key) for key in _alternatives(outline))


def _impact(outline: ChangeOutline) -> Iterator[ApprovalLine]:
    match outline.effect:
        case "read":
            yield ApprovalLine(
                key="approval.impact.reads", values={"path": outline.outside or _listed(outline)}
            )
            yield ApprovalLine(key="approval.impact.to_model")
        case "consent" if outline.memory:
            yield ApprovalLine(key=f"approval.impact.memory_{outline.memory}")
            yield ApprovalLine(key="approval.impact.memory_undo")
        case "consent" if not outline.foreign:
            yield ApprovalLine(key="approval.impact.plan")
        case "foreign" | "fetch" | "consent":
            yield from outline.foreign
        case "execute" if outline.effects is not None:
            yield from _of_effects(outline.effects, outline.ended)
        case "execute":
            yield from _of_command(outline)
        case _:
            yield from _of_files(outline)
            yield ApprovalLine(key="approval.impact.undo")


def _of_files(outline: ChangeOutline) -> Iterator[ApprovalLine]:
    lines = changed_lines(outline.difference)
    added = sum(line.startswith("+") for line in lines)
    removed = len(lines) - added
    missing = [path for path, digest in outline.before.items() if digest is None]
    if outline.effect == "delete":
        yield ApprovalLine(key="approval.impact.deletes", values={"path": _listed(outline), "lines": removed})
    elif len(outline.before) > 1:
        yield ApprovalLine(key="approval.impact.moves", values={"path": _listed(outline)})
    elif missing:
        yield ApprovalLine(key="approval.impact.creates", values={"path": missing[0], "lines": added})
    else:
        values = {"path": _listed(outline), "added": added, "removed": removed}
        yield ApprovalLine(key="approval.impact.changes", values={**values})
    if "many_files" in outline.reasons:
        yield ApprovalLine(key="approval.impact.in_all", values={"count": outline.files_in_all})


def _of_effects(effects: Effects, ended: CommandEnd) -> Iterator[ApprovalLine]:
    if ended != "well":
        yield ApprovalLine(key=f"approval.impact.command_{ended}")
    for kinds, key in (
        (("created",), "created"),
        (("changed", "mode", "moved"), "changed"),
        (("deleted",), "deleted"),
    ):
        paths = [one.path for one in effects.effects if one.kind in kinds and one.type != "folder"]
        own = [path for path in paths if ".git" in path.split("/")]
        listed = [path for path in paths if path not in own] or own[:1]
        if paths:
            values = {"count": len(paths), "paths": _some(listed)}
            yield ApprovalLine(key=f"approval.impact.files_{key}", values={**values})
    for bulk in effects.bulk:
        yield ApprovalLine(
            key="approval.impact.build_folder" if bulk.undoable else "approval.impact.build_folder_not_kept",
            values={"path": bulk.path, "count": bulk.files},
        )
    for path in effects.conflicts:
        yield ApprovalLine(key="approval.impact.overwrites", values={"path": path})
    for dropped in effects.dropped[:FIRST_SHOWN]:
        yield ApprovalLine(key=f"approval.impact.dropped_{dropped.reason}", values={"path": dropped.path})
    yield ApprovalLine(key="approval.impact.undo")


def _of_command(outline: ChangeOutline) -> Iterator[ApprovalLine]:
    held = "approval.impact.in_sandbox" if outline.sandboxed else "approval.impact.no_sandbox"
    yield ApprovalLine(key=held)
    yield ApprovalLine(
        key="approval.impact.with_network" if outline.network else "approval.impact.no_network"
    )
    if outline.secrets:
        values = {"paths": _some([*outline.secrets])}
        yield ApprovalLine(key="approval.impact.sees_secrets", values={**values})
    yield ApprovalLine(key="approval.impact.on_copy" if outline.on_copy else "approval.impact.no_undo")


def _listed(outline: ChangeOutline) -> str:
    return _some(list(outline.before))


def _some(paths: list[str]) -> str:
    more = f" … +{len(paths) - FIRST_SHOWN}" if len(paths) > FIRST_SHOWN else ""
    return ", ".join(paths[:FIRST_SHOWN]) + more


def _alternatives(outline: ChangeOutline) -> Iterator[str]:
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
