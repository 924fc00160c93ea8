"""What becomes of what a command did to its copy: taken over, asked about, or thrown away (G3, G9)."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from duckflow.config.settings import GateSettings
from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.files.changes import FileChange
from duckflow.domain.files.effects import Effect, Effects
from duckflow.domain.frozen import replace
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.loops.acting.approvals import ChangeOutline, ask_about
from duckflow.loops.calls import ResolvedCall
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import READ_CAP, Workspace
from duckflow.safety.policy.command_risk import similar_commands
from duckflow.safety.policy.effects import EffectLimits, FileVersions, assess_effects
from duckflow.safety.policy.policy import EffectsCase, PolicyVerdict, decide_effects, may_remember_effects
from duckflow.safety.policy.risk import Assessment
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.shell import Shell
from duckflow.tools.catalogue import CommandEnd, HeldEffects, Proposal, ToolResult
from duckflow.tools.editing.differences import difference_of
from duckflow.tools.effects_text import effects_line
from duckflow.tools.shell import TAKE_OVER, TakeOver, path_word, take_over


class _Judgement(NamedTuple):
    """What the rules say of effects, and what they say it by."""

    ruling: PolicyVerdict
    assessed: Assessment
    contents: FileVersions
    kind: ApprovalScope | None


class CommandEffects:
    """Judges what commands did, in one workspace."""

    def __init__(self, shell: Shell, workspace: Workspace, settings: GateSettings) -> None:
        self._shell = shell
        self._workspace = workspace
        self._limits = EffectLimits(settings.many_files, settings.large_bytes)
        self._shown: dict[str, tuple[Effects, Approval]] = {}

    async def on_copies(self) -> bool:
        """Whether commands work on a copy here."""
        return (await self._shell.sandbox()).copies

    async def settle(
        self,
        state: AgentState,
        call: ResolvedCall,
        result: ToolResult,
        access: Access,
        *,
        may_ask: bool,
        by_user: bool,
    ) -> ToolResult:
        """The result of a command with what became of its effects.

        If the user has to be asked, what must come next is the taking over; if nobody can be, they are gone.
        """
        held = result.held
        if held is None:
            return result
        judged = await self._judge(state, held)
        verdict = judged.ruling.verdict
        if by_user and verdict == "ask" and not held.effects.conflicts:
            verdict = "allow"
        if verdict == "allow" or held.effects.nothing:
            return _joined(result, await self._take_over(held, access, call.action.reasoning))
        if verdict == "ask" and held.effects.only_caches:
            await self._shell.discard(held.copy_id)
            return replace(result, held=None)
        if verdict == "deny" or not may_ask:
            await self._shell.discard(held.copy_id)
            gone = effects_line("Thrown away, the workspace is as it was", held.effects)
            return _joined(result, ToolResult(text=f"({gone} {judged.ruling.reason}.)"))
        await self._shell.keep(held.copy_id, held.effects)
        waits = effects_line("Not yet real, the user is asked", held.effects)
        then = (_take_over_action(held, call.action.reasoning),)
        return _joined(result, ToolResult(text=f"({waits})", then=then))

    async def _take_over(self, held: HeldEffects, access: Access, why: str | None) -> ToolResult:
        """Make effects real; what somebody else changed at the last moment is asked about."""
        taken = await take_over(self._shell, held, access)
        if taken.held is None:
            return taken
        return replace(taken, held=None, then=(_take_over_action(taken.held, why),))

    async def question(self, state: AgentState, call: ResolvedCall) -> Approval | None:
        """What to ask before effects are taken over, if anything; Refused if they may not be."""
        args = call.args
        assert isinstance(args, TakeOver)
        effects = await self._shell.effects(args.copy_id)
        held = HeldEffects(copy_id=args.copy_id, command=args.command, effects=effects, ended=args.ended)
        judged = await self._judge(state, held)
        if judged.ruling.verdict == "deny":
            await self._shell.discard(args.copy_id)
            raise Refused(f"What the command did was thrown away: {judged.ruling.reason}.")
        if judged.ruling.verdict == "allow" or effects.nothing:
            return None
        if (shown := self._shown.get(args.copy_id)) is not None and shown[0] is effects:
            return shown[1]  # commands go on in that copy: the question stays what it was
        own = (one.path for one in effects.effects if ".git" in one.path.split("/"))
        quiet = frozenset(path for path in own if not judged.assessed.by_path.get(path))
        outline = ChangeOutline(
            effect="execute",
            proposal=Proposal(await asyncio.to_thread(_difference, held, judged.contents, quiet)),
            assessed=judged.assessed,
            before=_before(effects),
            effects=effects,
            ended=args.ended,
            sandboxed=True,
        )
        root = self._workspace.root
        asked = ask_about(state, root, call.action, judged.ruling, outline, judged.kind)
        self._shown = {args.copy_id: (effects, asked)}
        return asked

    async def show(self, changes: Iterable[FileChange]) -> None:
        """Let background commands see what a file tool did."""
        await self._shell.put(dict.fromkeys(change.path for change in changes))

    async def left_over(self, state: AgentState, *, background: bool, cancelled: bool) -> tuple[Action, ...]:
        """What commands did and nobody settled, as the actions that take it over.

        Of those that were cancelled; and if `background`, of those that go on: they are ended now.
        """
        found: list[tuple[str, CommandEnd]] = [(one, "cancelled") for one in self._shell.take_interrupted()]
        ended = await self._shell.end_background() if background else None
        if ended is not None and ended.copy_id:
            found.append(
                (ended.copy_id, "cancelled" if cancelled else "failed" if ended.exit_code else "succeeded")
            )
        offered = [await self._offer(state, *one) for one in found]
        return tuple(action for action in offered if action is not None)

    async def _offer(self, state: AgentState, copy_id: str, ended: CommandEnd) -> Action | None:
        effects = await self._shell.effects(copy_id)
        command = (await self._shell.copy(copy_id)).about.command
        held = HeldEffects(copy_id=copy_id, command=command, effects=effects, ended=ended)
        verdict = (await self._judge(state, held)).ruling.verdict
        if verdict == "deny" or effects.nothing or (verdict == "ask" and effects.only_caches):
            await self._shell.discard(copy_id)
            return None
        await self._shell.keep(copy_id, effects)
        return _take_over_action(held, None)

    async def discard(self, action: Action) -> None:
        """Throw away what an action would take over, if it is one that does; it may be gone already."""
        copy_id = _copy_of(action)
        if copy_id:
            with suppress(ToolError):
                await self._shell.discard(copy_id)

    async def discard_unwanted(self, state: AgentState) -> None:
        """Throw away what waited for an answer that can't come any more."""
        waiting = {_copy_of(action) for action in state.queue}
        waiting |= {
            _copy_of(one.action) for one in (state.approval, state.running, state.task_running) if one
        }
        for copy_id in self._shell.pending_copies.difference(waiting):
            await self._shell.discard(copy_id)

    async def _judge(self, state: AgentState, held: HeldEffects) -> _Judgement:
        copy = await self._shell.copy(held.copy_id)
        contents = self._contents(copy, held.effects)
        return await asyncio.to_thread(self._apply_rules, state, held, contents)

    def _apply_rules(self, state: AgentState, held: HeldEffects, contents: FileVersions) -> _Judgement:
        effects = held.effects
        assessed = assess_effects(effects, contents, self._limits, _made(state))
        changes = bool(effects.effects)
        case = EffectsCase(
            risk=assessed.risk,
            changes=changes,
            deletes="delete" in assessed.reasons,
            conflicts=bool(effects.conflicts),
            stopped=held.ended in ("stopped", "cancelled")
            and any(".git" not in one.path.split("/") for one in effects.effects),
        )
        kind = similar_commands(held.command) if may_remember_effects(case) else None
        ruling = decide_effects(
            state.mode, case._replace(remembered=kind is not None and kind in state.allowed)
        )
        if ruling.verdict == "allow" and state.objection and changes:
            ruling, kind = PolicyVerdict(verdict="ask", reason=state.objection, because="objection"), None
        return _Judgement(ruling, assessed, contents, kind)

    def _contents(self, copy: WorkspaceCopy, effects: Effects) -> FileVersions:
        gone = {one.moved_from or one.path for one in effects.effects if one.kind in ("deleted", "moved")}
        changed = {one.path for one in effects.effects if one.kind != "deleted"}

        def before(path: str) -> bytes | None:
            try:
                found = self._workspace.paths.now(path)
            except ToolError:
                return None
            return found.data[:READ_CAP] if found else None

        def after(path: str) -> bytes | None:
            if path in changed:
                return copy.content(path, READ_CAP)
            return None if path in gone else before(path)

        return FileVersions(before, after)


def _take_over_action(held: HeldEffects, why: str | None) -> Action:
    args = TakeOver(copy_id=held.copy_id, command=held.command, ended=held.ended)
    return Action(operation=TAKE_OVER, args=args.model_dump(), reasoning=why)


def _copy_of(action: Action) -> str:
    return str(action.args.get("copy_id", "")) if action.operation == TAKE_OVER else ""


def _joined(result: ToolResult, more: ToolResult) -> ToolResult:
    """The result of a command with what became of what it did."""
    return replace(
        result,
        text="\n".join(text for text in (result.text, more.text) if text),
        changed=more.changed,
        exact=more.exact or not more.changed,
        held=None,
        then=more.then,
    )


def _made(state: AgentState) -> frozenset[str]:
    """Files that came into being in this session: to delete one of those is nobody's loss."""
    return frozenset(
        change.path for one in state.change_sets for change in one.changes if change.before is None
    )


def _before(effects: Effects) -> dict[str, str | None]:
    """What each path is before, in a word."""
    before: dict[str, str | None] = {}
    for one in effects.effects:
        if one.kind == "moved":
            before[one.moved_from] = path_word(one.type, one.before)
            before[one.path] = None
        elif one.path not in before:
            before[one.path] = None if one.kind == "created" else path_word(one.type, one.before)
    return before


def _difference(held: HeldEffects, contents: FileVersions, quiet: frozenset[str]) -> str:
    """All that a command did, whole; what git writes for itself while it works is counted."""
    effects = held.effects
    parts = [f"$ {held.command}\n"]
    parts += [_of_effect(one, contents) for one in effects.effects if one.path not in quiet]
    notes = [text("approval.difference.git", count=len(quiet))] if quiet else []
    for bulk in effects.bulk:
        key = "approval.difference.folder" if bulk.undoable else "approval.difference.folder_not_kept"
        notes.append(text(key, path=bulk.path, count=bulk.files, size=bulk.size, deleted=bulk.deleted))
    return "".join((*parts, *(f"({note})\n" for note in notes)))


def _of_effect(effect: Effect, contents: FileVersions) -> str:
    path = effect.path
    if effect.kind == "moved":
        return f"rename from {effect.moved_from}\nrename to {path}\n"
    if effect.type == "folder":
        bits = f" (bits {effect.mode_after:o})" if effect.kind == "mode" and effect.mode_after else ""
        return f"{effect.kind} folder {path}/{bits}\n"
    if effect.type == "link":
        return f"{effect.kind} link {path} -> {effect.link_target}\n"
    bits = ""
    if effect.mode_before is not None and effect.mode_after not in (None, effect.mode_before):
        bits = f"old mode {effect.mode_before:o}\nnew mode {effect.mode_after:o}\n"
    if effect.kind == "mode":
        return f"--- a/{path}\n+++ b/{path}\n{bits}"
    old = contents.before(path) if effect.before else None
    new = contents.after(path) if effect.kind != "deleted" else None
    shown = difference_of(path, old, new) if effect.kind == "deleted" or new is not None else ""
    too_large = text("approval.difference.too_large", size=effect.size)
    return bits + (shown or f"--- a/{path}\n+++ b/{path}\n({too_large})\n")
