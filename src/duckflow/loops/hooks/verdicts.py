"""Run hooks and read their verdicts: exit codes or printed JSON (L5). Hooks can restrict, but not allow."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.domain.extensions import Hook, HookOutcome
from duckflow.domain.text import cut, head_and_tail
from duckflow.tools.programs import run_program

_MOST_BYTES = 100_000


class HookEnd(NamedTuple):
    """Result of a hook. The exit code is None if the hook could not be started or took too long."""

    exit_code: int | None
    output: str = ""
    errors: str = ""


class HookShell(NamedTuple):
    """Shell, folder and environment for hooks. Variables with keys are left out."""

    program: str | None
    folder: str
    environment: Mapping[str, str]

    async def run(self, command: str, given: bytes, seconds: float) -> HookEnd:
        """Run a hook until it ends."""
        if self.program is None:
            return HookEnd(None, errors="there is no shell")
        try:
            end = await run_program(
                [self.program, "-c", command],
                given,
                seconds=seconds,
                most=_MOST_BYTES,
                cwd=Path(self.folder),
                env=self.environment,
                stops=False,
            )
        except TimeoutError:
            return HookEnd(None, errors=f"it took longer than {seconds:g} s")
        except OSError as exc:
            return HookEnd(None, errors=exc.strerror or str(exc))
        output, errors = (said.decode("utf-8", "replace").strip() for said in (end.output, end.errors))
        return HookEnd(end.exit_code, output, errors)


BLOCKS = 2
"""Exit code by which a hook refuses."""

_REASON = 2_000
_CONTEXT = 10_000
_SPEAKS = ("UserPromptSubmit", "SessionStart")
"""Events whose hooks print plain text for the model, which is added to the prompt."""


class HookVerdict(NamedTuple):
    """Outcome, reason, text for the model, and whether all work must stop."""

    outcome: HookOutcome
    reason: str = ""
    context: str = ""
    halts: bool = False


def read_verdict(hook: Hook, ended: HookEnd) -> HookVerdict:
    """Return the verdict of one hook."""
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
    """Return the verdict of a failed hook. If it did not finish before an action, the user is asked."""
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
    found = None
    with suppress(ValueError, RecursionError):
        found = json.loads(output)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
