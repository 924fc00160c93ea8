"""What a hook said: by its exit code, or by the JSON it printed (L5). Hooks tighten, never loosen."""

import json
from typing import Any, NamedTuple, cast

from duckflow.domain.extensions import Hook, HookOutcome
from duckflow.domain.text import cut, head_and_tail
from duckflow.loops.hooks.process import HookEnd

BLOCKS = 2
"""The exit code that refuses."""

_REASON = 2_000
_CONTEXT = 10_000
_SPEAKS = ("UserPromptSubmit", "SessionStart")
"""Events whose hooks are heard by the model: what they print goes into the prompt."""


class HookVerdict(NamedTuple):
    """How it ended, why, what the model is to know, and whether the whole work is to stop here."""

    outcome: HookOutcome
    reason: str = ""
    context: str = ""
    halts: bool = False


def read_verdict(hook: Hook, ended: HookEnd) -> HookVerdict:
    """The verdict of one hook."""
    if ended.exit_code == BLOCKS:
        return HookVerdict("blocked", cut(ended.errors or "a hook refused it", _REASON))
    if ended.exit_code != 0:
        return _failed(hook, ended)
    said = _read_json(ended.output)
    if said is None:
        context = ended.output if hook.event in _SPEAKS else ""
        return HookVerdict("ok", context=head_and_tail(context, _CONTEXT))
    return _judge(hook, said)


def _failed(hook: Hook, ended: HookEnd) -> HookVerdict:
    """It said nothing of use. An exit code is a plain error; silence before an action means asking."""
    code = "" if ended.exit_code is None else f"exit code {ended.exit_code}"
    reason = cut(": ".join(part for part in (code, ended.errors) if part), _REASON)
    if hook.blocks_on_failure:
        return HookVerdict("blocked", f"a hook failed ({reason})")
    silent = ended.exit_code is None and hook.event == "PreToolUse"
    return HookVerdict("asks" if silent else "failed", f"a hook failed ({reason})" if silent else reason)


def _judge(hook: Hook, said: dict[str, Any]) -> HookVerdict:
    own = said.get("hookSpecificOutput")
    details = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
    context = head_and_tail(_text(details.get("additionalContext")), _CONTEXT)
    reason = _text(details.get("permissionDecisionReason") or said.get("reason") or said.get("stopReason"))
    reason = cut(reason, _REASON)
    stops = said.get("continue") is False and hook.event != "Stop"
    decision = details.get("permissionDecision")
    if stops or said.get("decision") == "block" or decision == "deny":
        return HookVerdict("blocked", reason or "a hook refused it", context, halts=stops)
    if decision in ("ask", "defer") and hook.event == "PreToolUse":
        return HookVerdict("asks", reason or "a hook wants you to decide", context)
    return HookVerdict("ok", cut(_text(said.get("systemMessage")), _REASON), context)


def _read_json(output: str) -> dict[str, Any] | None:
    if not output.startswith("{"):
        return None
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
