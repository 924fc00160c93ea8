"""Policy: decide whether to deny, ask or allow. Deny beats ask, ask beats allow (G3, SAFETY 1)."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, cast

from duckflow.domain.files.changes import ToolEffect
from duckflow.domain.frozen import Frozen
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import Because, Risk
from duckflow.safety.policy.protected import Protection

Verdict = Literal["allow", "ask", "deny"]

STRICTER: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

EFFECTS: tuple[ToolEffect, ...] = ("read", "write", "delete", "execute", "consent", "foreign", "fetch")

_TABLE: dict[Mode, str] = {
    "plan": "allow deny deny deny ask deny ask",
    "ask": "allow ask ask ask ask ask ask",
    "edits": "allow allow ask ask ask ask ask",
    "auto": "allow allow allow allow ask ask ask",
}
MODES: dict[Mode, dict[ToolEffect, Verdict]] = {
    mode: dict(zip(EFFECTS, cast("list[Verdict]", row.split()), strict=True)) for mode, row in _TABLE.items()
}
"""Verdict for each mode and kind of effect, unless a rule is stricter."""


class PolicyCase(NamedTuple):
    """Facts about an action, from which the policy decides."""

    effect: ToolEffect
    risk: Risk = "low"
    protection: Protection = "none"
    outside: bool = False
    """True if the action reaches outside the workspace."""
    sandboxed: bool = False
    """True if a working sandbox would confine the command."""
    copies: bool = False
    """True if the command would run on a copy of the workspace, so that its effects are judged afterwards."""
    external: bool = False
    """True if the user has declared the whole machine to be the sandbox."""
    remembered: bool = False
    """True if the user answered "always" for this kind of action."""


class PolicyVerdict(Frozen):
    """Verdict, what caused it, and the reason in words for the model."""

    verdict: Verdict
    reason: str
    because: Because = "mode"


def decide(mode: Mode, case: PolicyCase) -> PolicyVerdict:
    """Return the strictest of all verdicts on an action."""
    rulings = (*_rules(mode, case), _by_mode(effective(mode, copies=case.copies or case.external), case))
    return max(rulings, key=lambda ruling: STRICTER[ruling.verdict])


def effective(mode: Mode, *, copies: bool) -> Mode:
    """Return the mode to apply: if commands do not run on copies, `auto` counts as `edits`."""
    return "edits" if mode == "auto" and not copies else mode


class EffectsCase(NamedTuple):
    """Facts from which the policy decides after a command has run on its copy."""

    risk: Risk = "low"
    changes: bool = True
    """True if anything changed outside build and ignored folders."""
    deletes: bool = False
    conflicts: bool = False
    stopped: bool = False
    """True if the command was ended early, so that its changes to project files may be incomplete."""
    remembered: bool = False


def decide_effects(mode: Mode, case: EffectsCase) -> PolicyVerdict:
    """Decide whether to apply a command's effects (allow), ask about them, or discard them (deny)."""
    if case.risk == "forbidden":
        return _OWN
    if mode == "plan":
        return _deny("mode plan changes nothing; the user can change it with /mode")
    if case.conflicts:
        return _ask("conflict", "someone else changed a file that the command changed, too")
    if case.risk == "high":
        return _RISK
    if mode != "ask" and not case.changes:
        return _allow("only build and ignored folders changed")
    if case.stopped:
        return _ask("failed", "the command was stopped: the user decides what stays of it")
    if (mode == "ask" or (mode == "edits" and case.deletes)) and not case.remembered:
        what = "a delete" if mode == "edits" else "a change"
        return _ask("mode", f"in mode {mode} the user is asked about {what}")
    return _allow(f"mode {mode} permits what it did")


def may_remember_effects(case: EffectsCase) -> bool:
    """Return whether to offer the answer "always": only if the mode is the only reason to ask."""
    return case.risk in ("low", "medium") and not case.conflicts and not case.stopped


def may_remember(case: PolicyCase) -> bool:
    """Return whether to offer the answer "always": only if the mode is the only reason to ask."""
    held = case.effect in ("write", "foreign", "fetch") or (case.effect == "execute" and case.sandboxed)
    return held and case.risk in ("low", "medium") and case.protection == "none" and not case.outside


def _rules(mode: Mode, case: PolicyCase) -> Iterator[PolicyVerdict]:
    if case.protection == "denied" or case.risk == "forbidden":
        yield _OWN
    if case.outside and case.effect not in ("read", "execute"):
        yield _deny("nothing outside the workspace may be changed")
    if case.protection == "asks" or (case.protection == "guarded" and case.effect != "read"):
        yield _ask("protected", "this path is protected: the user is asked every time")
    if case.outside:
        yield _ask("outside", "it is outside the workspace: the user is asked")
    if case.effect == "execute" and not case.sandboxed and mode != "plan":
        yield _ask("no_sandbox", "there is no sandbox here: the user is asked about every command")
    if case.effect == "consent":
        yield _ask("consent", "only the user's own answer counts as consent")
    if case.risk == "high":
        yield _RISK


def _by_mode(mode: Mode, case: PolicyCase) -> PolicyVerdict:
    if case.effect == "execute" and case.copies and case.sandboxed:
        return _allow("it works on a copy; what it did is judged afterwards")
    match MODES[mode][case.effect]:
        case "deny":
            return _deny(f"mode {mode} only reads; the user can change it with /mode")
        case "ask" if case.remembered and may_remember(case):
            return _allow("the user allowed this kind for the session")
        case "ask":
            return _ask("mode", f"in mode {mode} the user is asked before a {case.effect}")
        case "allow":
            return _allow(f"mode {mode} permits to {case.effect}")


def _allow(reason: str) -> PolicyVerdict:
    return PolicyVerdict(verdict="allow", reason=reason)


def _ask(because: Because, reason: str) -> PolicyVerdict:
    return PolicyVerdict(verdict="ask", because=because, reason=reason)


def _deny(reason: str) -> PolicyVerdict:
    return PolicyVerdict(verdict="deny", reason=reason)


_OWN = _deny("it is closed to tools: Duckflow's own files, or a place for secrets")
_RISK = _ask("risk", "the risk is high: the user is asked")
