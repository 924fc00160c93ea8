"""Hooks of a session: choose the hooks for an event, run them, and act on their verdicts (L5)."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Literal

from duckflow.domain.errors import Refused
from duckflow.domain.events import HookRan
from duckflow.domain.extensions import Hook, HookEvent
from duckflow.domain.modes import Mode
from duckflow.domain.patterns import lazy_regex
from duckflow.loops.hooks.known_tools import KnownTool, fits, known_as, matches
from duckflow.loops.hooks.verdicts import HookShell, HookVerdict, read_verdict
from duckflow.loops.session import Session
from duckflow.tools.catalogue import ResolvedCall, ToolResult

PERMISSION_MODES: dict[Mode, str] = {
    "plan": "plan",
    "ask": "default",
    "edits": "acceptEdits",
    "auto": "auto",
}
Question = Literal["permission_prompt", "elicitation_dialog"]
_EXIT_LINE = lazy_regex(r"\Aexit code -?\d+\n?")
_LAST_WORD_S = 10.0
"""Time in seconds that the end of a session waits for hooks that still report a question."""


class Hooks:
    """Runs the hooks for an event in parallel, and records how each hook ended."""

    def __init__(self, session: Session, hooks: Sequence[Hook], shell: HookShell) -> None:
        self._session = session
        self._hooks = tuple(dict.fromkeys(hooks))
        self._shell = shell
        self._behind: set[asyncio.Task[Any]] = set()
        self._starting: asyncio.Task[Sequence[HookVerdict]] | None = None
        self._stopped_before = False
        self.halted = False
        """True if a hook asked to stop working on this message (`"continue": false`)."""

    def start(self, *, resumed: bool) -> None:
        """Start the hooks for an opened session. The model gets their output with the first message."""
        chosen = self._for("SessionStart", source := "resume" if resumed else "startup")
        if chosen:
            self._starting = asyncio.ensure_future(self._run(chosen, {"source": source}))

    async def before(self, call: ResolvedCall) -> str:
        """Return a hook's reason to ask the user before an action. Raise Refused if a hook refuses it."""
        verdicts = await self._around("PreToolUse", call)
        blocked = [one.reason for one in verdicts if one.outcome == "blocked"]
        if blocked:
            raise Refused(f"A hook of the user's refused it: {'; '.join(blocked)}", "reason.hook")
        return "; ".join(one.reason for one in verdicts if one.outcome == "asks")

    async def after(self, call: ResolvedCall, result: ToolResult) -> ToolResult:
        """Return the result of an action, with the remarks that hooks make about it."""
        response = _response(call, result, self._shell.folder)
        verdicts = await self._around("PostToolUse", call, {"tool_response": response})
        said = [one.reason for one in verdicts if one.outcome == "blocked"]
        said += [one.context for one in verdicts if one.context]
        return result.with_lines(*map(_from_hook, said))

    async def submitted(self, text: str) -> str | None:
        """Return the text that hooks add to a user's message; None if a hook refuses it."""
        self._stopped_before = self.halted = False
        begun = await self._starting if self._starting is not None else ()
        verdicts = await self._run(self._for("UserPromptSubmit"), {"prompt": text})
        if any(one.outcome == "blocked" for one in verdicts):
            return None
        self._starting = None
        added = "\n".join(one.context for one in (*begun, *verdicts) if one.context)
        return _from_hook(added) if added else ""

    async def stop(self) -> bool:
        """Return True if a hook wants work on the request to continue. The model gets the hook's reason."""
        more = {"stop_hook_active": self._stopped_before, "last_assistant_message": self._session.state.reply}
        verdicts = await self._run(self._for("Stop"), more)
        self._stopped_before = any(one.outcome == "blocked" for one in verdicts)
        return self._stopped_before

    def notify(self, kind: Question, message: str) -> None:
        """Tell hooks, in the background, that a question waits for the user."""
        chosen = self._for("Notification", kind)
        if chosen:
            told = {"message": message, "notification_type": kind}
            task = asyncio.create_task(self._run(chosen, told))
            self._behind.add(task)
            task.add_done_callback(self._behind.discard)

    async def aclose(self) -> None:
        """Run the hooks for the end of the session, after the hooks that are still running."""
        if self._behind:
            await asyncio.wait(self._behind, timeout=_LAST_WORD_S)
        running: list[asyncio.Task[Any]] = [*self._behind, *([self._starting] if self._starting else [])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._session.state.seq:  # otherwise the session was never opened
            await self._run(self._for("SessionEnd"), {"reason": "other"})

    async def _around(
        self, event: HookEvent, call: ResolvedCall, more: dict[str, Any] | None = None
    ) -> Sequence[HookVerdict]:
        """Return the verdicts of hooks about an action; none for calls that the program itself makes."""
        hooks = () if call.tool.by_program else self._for(event)
        tools = known_as(call.action, self._shell.folder) if hooks else ()
        chosen: list[tuple[Hook, KnownTool]] = []
        for hook in hooks:
            fitting = [tool for tool in tools if fits(hook, tool)]
            chosen += [(hook, tool) for tool in fitting if tool.name == fitting[0].name]
        given = {**(more or {}), "tool_use_id": f"a{self._session.state.seq + 1}"}
        return await asyncio.gather(*(self._one(hook, given, tool) for hook, tool in chosen))

    def _for(self, event: HookEvent, kind: str = "") -> tuple[Hook, ...]:
        of_event = (hook for hook in self._hooks if hook.event == event)
        return tuple(hook for hook in of_event if not kind or matches(hook.matcher, kind))

    async def _run(self, hooks: Sequence[Hook], more: dict[str, Any]) -> Sequence[HookVerdict]:
        return await asyncio.gather(*(self._one(hook, more) for hook in hooks))

    async def _one(self, hook: Hook, more: dict[str, Any], tool: KnownTool | None = None) -> HookVerdict:
        state = self._session.state
        given = {
            "session_id": state.session_id,
            "transcript_path": "",
            "cwd": self._shell.folder,
            "permission_mode": PERMISSION_MODES[state.mode],
            "hook_event_name": hook.event,
            **({"tool_name": tool.name, "tool_input": tool.input} if tool else {}),
            **more,
        }
        sent = json.dumps(given, ensure_ascii=False).encode("utf-8", "replace")
        verdict = read_verdict(hook, await self._shell.run(hook.command, sent, hook.seconds))
        self.halted |= verdict.halts and tool is not None
        told = hook.event == "Stop" and verdict.outcome == "blocked"
        self._session.record(
            HookRan(
                hook=hook.event,
                command=hook.command,
                outcome=verdict.outcome,
                reason=verdict.reason,
                tool=tool.name if tool else "",
                told=_from_hook(verdict.reason) if told else "",
            )
        )
        return verdict


def _from_hook(said: str) -> str:
    return f"A hook of the user's says: {said}"


def _response(call: ResolvedCall, result: ToolResult, root: str) -> dict[str, Any]:
    """Return the result of an action in the form of Claude Code, without the exit code line of commands."""
    if call.tool.effect == "execute":
        ended = {"stdout": _EXIT_LINE.sub("", result.text), "stderr": "", "interrupted": False}
        return {**ended, "exit_code": result.exit_code}
    about = {"filePath": f"{root}/{result.path}"} if result.path else {}
    return {**about, "success": True, "text": result.text}
