"""Turn the known facts about a change into a question, and an approval into a permit (G1, G5)."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.domain.decision import Action
from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.files.effects import Effects
from duckflow.domain.hosts import REGISTRIES
from duckflow.domain.lines import TextLine, line
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.reduce.objective import digest_of
from duckflow.domain.state import AgentState
from duckflow.i18n.hosts import host_names
from duckflow.safety.files.access import Permit
from duckflow.safety.paths import printable
from duckflow.safety.policy.policy import PolicyVerdict
from duckflow.safety.policy.risk import Assessment, changed_lines
from duckflow.tools.catalogue import CommandEnd, Proposal
from duckflow.tools.memory import REMEMBER

FIRST_SHOWN = 20
"""Largest number of files to name in a question; further files are only counted."""


@dataclass(frozen=True, kw_only=True)
class ChangeOutline:
    """Everything known about a change that the user is asked about."""

    effect: ToolEffect
    proposal: Proposal
    assessed: Assessment
    before: dict[str, str | None]
    """SHA-256 of each affected file, by path."""
    outside: str | None = None
    """Real path of a file outside the workspace."""
    sandboxed: bool = False
    on_copy: bool = False
    """True if a command would work on a copy."""
    files_in_all: int = 0
    """Number of files that change before the user can be asked again."""
    scripts: Mapping[str, str] = field(default_factory=dict[str, str])
    """SHA-256 of each file that a command names, by path."""
    effects: Effects | None = None
    """Effects of a command that ran on a copy."""
    quiet: frozenset[str] = frozenset()
    """Files of git among them that the difference only counts."""
    ended: CommandEnd = "succeeded"


def ask_about(
    state: AgentState,
    root: Path,
    action: Action,
    ruling: PolicyVerdict,
    outline: ChangeOutline,
    kind: ApprovalScope | None,
) -> Approval:
    """Return the question to the user. Its digest ties the answer to exactly what the question shows."""
    return Approval(
        approval_id=f"p{state.seq + 1}",
        action=action,
        intent=action.reasoning or "",
        rationale=ruling.reason,
        because=ruling.because,
        risk=outline.assessed.risk,
        reasons=outline.assessed.reasons,
        impact=tuple(_impact(outline)),
        alternatives=tuple(map(line, _alternatives(action, outline))),
        difference=outline.proposal.difference,
        digest=_digest(root, action, outline),
        kind=kind,
        editable=outline.proposal.content is not None,
        before=outline.before,
        outside=outline.outside,
        drafts=_drafts(action, outline),
        folders=tuple(bulk.path for bulk in outline.effects.bulk) if outline.effects else (),
    )


def permit_of(approval: Approval | None) -> Permit | None:
    """Return the permit for an approved action; None for a command, whose effects are judged separately."""
    if approval is None or approval.action.operation in ("shell.run", "shell.start"):
        return None
    return Permit(approval.before, approval.outside, approval.folders)


def _drafts(action: Action, outline: ChangeOutline) -> tuple[str, ...]:
    """Return hashes by which a draft is recognized when the model proposes it again in other words."""
    # A plan keeps its id when it changes, so what is asked about does not follow from the arguments.
    own = () if outline.effect == "consent" else (digest_of((action,)),)
    if outline.effects is not None:
        return (*own, _hash_of([action.operation, _what_it_did(action, outline.effects)]))
    # The lines around a change belong to it: the same lines at another place are another draft.
    changed = outline.proposal.difference
    return (*own, _hash_of([sorted(outline.before), changed])) if changed else own


def _what_it_did(action: Action, effects: Effects) -> Sequence[object]:
    """List the effects of a command. What git writes differs each time, so there the command counts."""
    files = [one for one in effects.effects if ".git" not in one.path.split("/")]
    done = [[one.path, one.kind, one.after, one.mode_after, one.moved_from, one.link_target] for one in files]
    built = [[one.path, one.deleted] for one in effects.bulk]
    return [*done, *built] or [[action.args.get("command")]]


def _digest(root: Path, action: Action, outline: ChangeOutline) -> str:
    bound = [
        action.operation,
        action.args,
        outline.proposal.difference,
        str(root),
        outline.before,
        outline.outside,
        outline.scripts,
        outline.effects.model_dump_json() if outline.effects else "",
    ]
    return _hash_of(bound)


def _hash_of(bound: object) -> str:
    text = json.dumps(bound, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _impact(outline: ChangeOutline) -> Iterator[TextLine]:
    match outline.effect:
        case "read":
            yield line("approval.impact.reads", path=outline.outside or _some(outline.before))
            yield line("approval.impact.to_model")
        case "consent" if not outline.proposal.impact:
            yield line("approval.impact.plan")
        case "foreign" | "fetch" | "consent":
            yield from outline.proposal.impact
        case "write" if outline.proposal.undoes:
            yield from outline.proposal.impact
        case "execute" if outline.effects is not None:
            yield from _effects_impact(outline.effects, outline.ended, outline.quiet)
        case "execute":
            yield from _command_impact(outline)
        case _:
            yield from _files_impact(outline)
            yield line("approval.impact.undo")


def _files_impact(outline: ChangeOutline) -> Iterator[TextLine]:
    lines = changed_lines(outline.proposal.difference)
    added = sum(one.startswith("+") for one in lines)
    removed = len(lines) - added
    missing = [path for path, digest in outline.before.items() if digest is None]
    listed = _some(outline.before)
    if outline.effect == "delete":
        yield line("approval.impact.deletes", path=listed, lines=removed)
    elif outline.proposal.writes:
        yield line("approval.impact.files_changed", count=len(outline.before), paths=listed)
    elif len(outline.before) > 1:
        yield line("approval.impact.moves", path=listed)
    elif missing:
        yield line("approval.impact.creates", path=missing[0], lines=added)
        yield from outline.proposal.impact
    else:
        yield line("approval.impact.changes", path=listed, added=added, removed=removed)
    if "many_files" in outline.assessed.reasons:
        yield line("approval.impact.in_all", count=outline.files_in_all)


def _effects_impact(effects: Effects, ended: CommandEnd, quiet: frozenset[str]) -> Iterator[TextLine]:
    caches = effects.caches
    if ended != "succeeded":
        yield line(f"approval.impact.command_{ended}")
    for kinds, key in (
        (("created",), "created"),
        (("changed", "mode"), "changed"),
        (("moved",), "moved"),
        (("deleted",), "deleted"),
    ):
        paths = [
            f"{one.moved_from} → {one.path}" if one.kind == "moved" else one.path
            for one in effects.effects
            if one.kind in kinds and one.type != "folder" and one.path not in quiet
        ]
        paths += [path for bulk in effects.bulk for path in bulk.lost] if key == "deleted" else []
        own = [path for path in paths if ".git" in path.split("/")]
        folders = list(dict.fromkeys(f"{path[: f'/{path}/'.index('/.git/')]}.git" for path in own))
        listed = [path for path in paths if path not in own] or (own if len(own) == 1 else folders)
        if paths:
            yield line(f"approval.impact.files_{key}", count=len(paths), paths=_some(listed))
    for bulk in (one for one in effects.bulk if one not in caches):
        key = "approval.impact.build_folder" if bulk.undoable else "approval.impact.build_folder_not_kept"
        yield line(key, path=printable(bulk.path), count=bulk.files)
    if unkept := effects.unkept:
        yield line("approval.impact.not_kept", path=_some(unkept))
    for path in effects.conflicts:
        yield line("approval.impact.overwrites", path=printable(path))
    for dropped in effects.dropped[:FIRST_SHOWN]:
        yield line(f"approval.impact.dropped_{dropped.reason}", path=printable(dropped.path))
    if not unkept:
        yield line("approval.impact.undo")


def _command_impact(outline: ChangeOutline) -> Iterator[TextLine]:
    proposal = outline.proposal
    yield line("approval.impact.in_sandbox" if outline.sandboxed else "approval.impact.no_sandbox")
    if proposal.hosts and not proposal.network:
        yield line("approval.impact.reaches", hosts=_some(host_names(proposal.hosts)))
        if REGISTRIES in proposal.hosts:
            yield line("approval.impact.registries")
    else:
        yield line("approval.impact.with_network" if proposal.network else "approval.impact.no_network")
    if proposal.secrets:
        yield line("approval.impact.sees_secrets", paths=_some(proposal.secrets))
    yield line("approval.impact.on_copy" if outline.on_copy else "approval.impact.no_undo")


def _some(paths: Collection[str]) -> str:
    more = f" … +{len(paths) - FIRST_SHOWN}" if len(paths) > FIRST_SHOWN else ""
    return ", ".join(map(printable, [*paths][:FIRST_SHOWN])) + more


def _alternatives(action: Action, outline: ChangeOutline) -> Iterator[str]:
    effect = outline.effect
    if effect == "consent" and not outline.proposal.impact:
        yield "approval.instead.revise"
        return
    yield "approval.instead.throw_away" if outline.effects is not None else "approval.instead.refuse"
    if outline.proposal.content is not None:
        yield "approval.instead.edit"
    if effect == "read":
        yield "approval.instead.copy"
    if effect == "execute" and outline.effects is None:
        yield "approval.instead.yourself"
    if {"large", "many_files"} & set(outline.assessed.reasons):
        yield "approval.instead.smaller"
    if effect not in ("read", "fetch", "consent") or action.operation == REMEMBER:
        yield "approval.instead.plan_mode"
