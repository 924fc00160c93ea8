"""Effects of commands that ran on copies: applied, asked about, or discarded (G3, G9)."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from duckflow.config.grants import Grants
from duckflow.config.settings import GateSettings
from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.files.changes import FileChange
from duckflow.domain.files.effects import Effect, Effects, identity_of
from duckflow.domain.frozen import replace
from duckflow.domain.lines import line
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.loops.acting.approvals import ChangeOutline, ask_about
from duckflow.loops.acting.deletions import UNASKED, Deletions, made_here
from duckflow.loops.acting.file_versions import of_command
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import READ_CAP, Workspace
from duckflow.safety.paths import printable
from duckflow.safety.policy.command_risk import similar_commands
from duckflow.safety.policy.effects import FileVersions, assess_effects
from duckflow.safety.policy.git_config import ReadFile, UnreadableFile
from duckflow.safety.policy.git_index import entries_digest
from duckflow.safety.policy.policy import EffectsCase, PolicyVerdict, decide_effects, may_remember_effects
from duckflow.safety.policy.risk import Assessment
from duckflow.safety.sandbox.shell import Shell
from duckflow.tools.catalogue import CommandEnd, Proposal, ResolvedCall, TakeOver, ToolResult
from duckflow.tools.editing.differences import difference_of
from duckflow.tools.effects_text import effects_line
from duckflow.tools.shell import TAKE_OVER, apply_waiting


class _Judgement(NamedTuple):
    effects: Effects
    ruling: PolicyVerdict
    assessed: Assessment
    contents: FileVersions
    kind: ApprovalScope | None


class CommandEffects:
    """Judges the effects of commands in one workspace."""

    def __init__(
        self, shell: Shell, workspace: Workspace, settings: GateSettings, grants: Grants, deletions: Deletions
    ) -> None:
        self._shell = shell
        self._workspace = workspace
        self._limits = settings
        self._grants = grants
        self._deletions = deletions
        self._shown: dict[str, tuple[Effects, Approval]] = {}

    async def on_copies(self) -> bool:
        """Return whether commands work on a copy in this workspace."""
        return (await self._shell.sandbox()).copies

    def begin_request(self, request_id: str) -> None:
        """Name the request that sent the next commands."""
        self._shell.begin_request(request_id)

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
        """Apply, keep or discard the effects of a command. Return its result with a note about that.

        Effects that the user must approve are kept until the answer, or discarded without `may_ask`.
        """
        waiting = result.waiting
        if waiting is None:
            return result
        effects, ruling, _, contents, _ = await self._judge(state, waiting)
        verdict = ruling.verdict
        if by_user and verdict == "ask" and not effects.conflicts:
            verdict = "allow"
        if verdict == "allow" or effects.nothing:
            applied = await apply_waiting(self._shell, waiting, effects, access)
            again = (_take_over(applied.waiting, call.action.reasoning),) if applied.waiting else ()
            return _joined(result, replace(applied, then=(*again, *result.then)))
        if verdict == "ask" and await asyncio.to_thread(_leaves_nothing, effects, contents):
            await self._shell.discard(waiting.copy_id)
            return replace(result, waiting=None)
        if verdict == "deny" or not may_ask:
            await self._shell.discard(waiting.copy_id)
            gone = effects_line("discarded", effects)
            told = (line("action.thrown_away"), *((line(ruling.key),) if ruling.key else ()))
            return _joined(result, ToolResult(text=f"({gone} {ruling.reason}.)", told=told))
        await self._shell.keep(waiting.copy_id)
        waits = effects_line("waiting", effects)
        then = (_take_over(waiting, call.action.reasoning), *result.then)
        return _joined(result, ToolResult(text=f"({waits})", then=then))

    async def question(self, state: AgentState, call: ResolvedCall) -> Approval | None:
        """Return the question to ask before applying effects, None if allowed. Raise Refused if denied."""
        args = call.args
        assert isinstance(args, TakeOver)
        effects, ruling, assessed, contents, kind = await self._judge(state, args)
        if ruling.verdict == "deny":
            await self._shell.discard(args.copy_id)
            raise Refused(f"What the command did was thrown away: {ruling.reason}.", ruling.key)
        if ruling.verdict == "allow" or effects.nothing:
            return None
        live = args.copy_id not in self._shell.pending_copies
        if live and (shown := self._shown.get(args.copy_id)) is not None and shown[0] is effects:
            return shown[1]  # a background command still changes that copy, but the question stays the same
        own = (one.path for one in effects.effects if ".git" in one.path.split("/"))
        quiet = frozenset(path for path in own if not assessed.by_path.get(path))
        outline = ChangeOutline(
            effect="execute",
            proposal=Proposal(
                await asyncio.to_thread(
                    difference_shown, args.command, effects, contents, quiet, assessed.in_git
                )
            ),
            assessed=assessed,
            before=_before(effects),
            effects=effects,
            quiet=quiet,
            ended=args.ended,
            sandboxed=True,
        )
        asked = ask_about(state, self._workspace.root, call.action, ruling, outline, kind)
        self._shown = {args.copy_id: (effects, asked)}
        return asked

    async def show(self, changes: Iterable[FileChange]) -> None:
        """Make the changes of a file tool visible to background commands."""
        await self._shell.put(dict.fromkeys(change.path for change in changes))

    async def left_over(self, state: AgentState, *, background: bool, cancelled: bool) -> tuple[Action, ...]:
        """Return actions that apply leftover effects. With `background`, first end background commands."""
        found: list[tuple[str, CommandEnd]] = [(one, "cancelled") for one in self._shell.take_interrupted()]
        ended = await self._shell.end_background() if background else None
        if ended is not None and ended.copy_id:
            found.append(
                (ended.copy_id, "cancelled" if cancelled else "failed" if ended.exit_code else "succeeded")
            )
        offered = [await self._offer(state, *one) for one in found]
        return tuple(action for action in offered if action is not None)

    async def _offer(self, state: AgentState, copy_id: str, ended: CommandEnd) -> Action | None:
        command = (await self._shell.copy(copy_id)).about.command
        waiting = TakeOver(copy_id=copy_id, command=command, ended=ended)
        effects, ruling, _, contents, _ = await self._judge(state, waiting)
        verdict = ruling.verdict
        idle = verdict == "ask" and await asyncio.to_thread(_leaves_nothing, effects, contents)
        if verdict == "deny" or effects.nothing or idle:
            await self._shell.discard(copy_id)
            return None
        await self._shell.keep(copy_id)
        return _take_over(waiting, None)

    async def discard(self, action: Action) -> None:
        """Discard the effects that an action would apply; do nothing if it is no such action."""
        copy_id = _copy_of(action)
        if copy_id:
            with suppress(ToolError):
                await self._shell.discard(copy_id)

    async def discard_unwanted(self, state: AgentState) -> None:
        """Discard effects that no queued, running or unanswered action would apply."""
        waiting = {_copy_of(action) for action in (*state.queue, *state.set_aside)}
        waiting |= {
            _copy_of(one.action) for one in (state.approval, state.running, state.task_running) if one
        }
        for copy_id in self._shell.pending_copies.difference(waiting):
            await self._shell.discard(copy_id)

    async def _judge(self, state: AgentState, waiting: TakeOver) -> _Judgement:
        effects = await self._shell.effects(waiting.copy_id)
        copy = await self._shell.copy(waiting.copy_id)
        contents = of_command(self._workspace, copy, effects, self._shell.git_places)
        judged = await asyncio.to_thread(self._apply_rules, state, waiting, effects, contents)
        deletes = judged.ruling.verdict == "allow" and "delete" in judged.assessed.reasons
        if deletes and await self._deletions.unasked(state):
            return judged._replace(ruling=UNASKED, kind=None)
        return judged

    def _apply_rules(
        self, state: AgentState, waiting: TakeOver, effects: Effects, contents: FileVersions
    ) -> _Judgement:
        assessed = assess_effects(effects, contents, self._limits, made_here(state))
        deletes = "delete" in assessed.reasons
        changes = bool(effects.effects) or deletes
        case = EffectsCase(
            risk=assessed.risk,
            changes=changes,
            deletes=deletes,
            conflicts=bool(effects.conflicts),
            stopped=waiting.ended in ("stopped", "cancelled")
            and (deletes or any(".git" not in one.path.split("/") for one in effects.effects)),
        )
        kind = similar_commands(waiting.command) if may_remember_effects(case) else None
        remembered = kind is not None and (kind in state.allowed or self._grants.cover(kind))
        ruling = decide_effects(state.mode, case._replace(remembered=remembered))
        if ruling.verdict == "allow" and state.objection and changes:
            ruling, kind = PolicyVerdict(verdict="ask", reason=state.objection, because="objection"), None
        return _Judgement(effects, ruling, assessed, contents, kind)


def _take_over(waiting: TakeOver, why: str | None) -> Action:
    return Action(operation=TAKE_OVER, args=waiting.model_dump(), reasoning=why)


def _copy_of(action: Action) -> str:
    return str(action.args.get("copy_id", "")) if action.operation == TAKE_OVER else ""


def _joined(result: ToolResult, more: ToolResult) -> ToolResult:
    return replace(
        result.with_lines(more.text),
        told=(*result.told, *more.told),
        changed=more.changed,
        exact=more.exact or not more.changed,
        waiting=None,
        then=more.then,
    )


def _leaves_nothing(effects: Effects, contents: FileVersions) -> bool:
    """Return whether only caches would change, and what git notes of unchanged files in its index.

    Commands that look, such as `git status`, write that down.
    """
    own = {one.path for one in effects.effects}
    only = len(effects.caches) == len(effects.bulk) and own.issuperset(effects.conflicts)
    return only and all(_is_refreshed_index(one, contents) for one in effects.effects)


def _is_refreshed_index(effect: Effect, contents: FileVersions) -> bool:
    same_kind = effect.kind == "changed" and effect.type == "file" and effect.mode_before == effect.mode_after
    if not same_kind or not effect.path.endswith("/index"):
        return False  # before anything is read
    with suppress(UnreadableFile):
        before, after = contents.before(effect.path), contents.after(effect.path)
        entries = entries_digest(effect.path, after or b"")
        return entries is not None and entries == entries_digest(effect.path, before or b"")
    return False


def _before(effects: Effects) -> dict[str, str | None]:
    before: dict[str, str | None] = {}
    for one in effects.effects:
        if one.kind == "moved":
            before[one.moved_from] = identity_of(one.type, one.before)
            before.setdefault(one.path, None)  # a link or folder may have been removed there first
        elif one.path not in before:
            before[one.path] = None if one.kind == "created" else identity_of(one.type, one.before)
    return before


def difference_shown(
    command: str,
    effects: Effects,
    contents: FileVersions,
    quiet: frozenset[str],
    in_git: Mapping[str, bytes],
) -> str:
    """Return effects as a diff, below their command if there is one. Files of git in `quiet` are counted."""
    parts = [f"$ {command}\n"] if command else []  # agents have none
    caches = effects.caches
    named = [one for one in effects.effects if one.path not in quiet]
    parts += [_of_effect(one, contents) for one in named]
    parts += [
        f"({text('approval.difference.in_git', path=path)})\n{difference_of(path, None, content)}"
        for path, content in in_git.items()
    ]
    notes = [text("approval.difference.git", count=len(quiet))] if quiet else []
    for bulk in (one for one in effects.bulk if one not in caches):
        path = printable(bulk.path)
        said = [text("approval.difference.folder", path=path, count=bulk.files, size=bulk.size)]
        said += [text("approval.difference.deleted", count=bulk.deleted)] if bulk.deleted else []
        said += [] if bulk.undoable else [text("approval.difference.not_kept")]
        notes.append(text("risk.and").join(said))
    unnamed = sum(one.files for one in effects.bulk if one in caches)
    notes += [text("approval.difference.caches", count=unnamed)] if unnamed else []
    return "".join((*parts, *(f"({note})\n" for note in notes)))


def _of_effect(effect: Effect, contents: FileVersions) -> str:
    path, named = effect.path, printable(effect.path)
    if effect.kind == "moved":
        return f"rename from {printable(effect.moved_from)}\nrename to {named}\n"
    if effect.type == "folder":
        bits = f" ({effect.mode_after:o})" if effect.kind == "mode" and effect.mode_after else ""
        return f"({text(f'approval.difference.folder_{effect.kind}', path=named)}{bits})\n"
    if effect.type == "link":
        said = text(f"approval.difference.link_{effect.kind}", path=named)
        leads = "" if effect.kind == "deleted" else f" -> {printable(effect.link_target)}"
        return f"({said}{leads})\n"
    bits = ""
    if effect.mode_before is not None and effect.mode_after not in (None, effect.mode_before):
        bits = f"old mode {effect.mode_before:o}\nnew mode {effect.mode_after:o}\n"
    if effect.kind == "mode":
        return f"--- a/{named}\n+++ b/{named}\n{bits}"
    old = _shown_content(contents.before, path) if effect.before else None
    new = _shown_content(contents.after, path) if effect.kind != "deleted" else None
    shown = difference_of(path, old, new) if effect.kind == "deleted" or new is not None else ""
    too_large = text("approval.difference.too_large", size=effect.size)
    return bits + (shown or f"--- a/{named}\n+++ b/{named}\n({too_large})\n")


def _shown_content(read: ReadFile, path: str) -> bytes | None:
    with suppress(UnreadableFile):
        content = read(path)
        return content if content is None or len(content) <= READ_CAP else None
    return None
