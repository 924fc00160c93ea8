"""Policy: decide whether to deny, ask or allow. Deny beats ask, ask beats allow (G3, SAFETY 1)."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, cast

from duckflow.domain.files.changes import ToolEffect
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


class PolicyVerdict(NamedTuple):
    """Verdict, what caused it, and the reason in words for the model; `key` names that of a denial."""

    verdict: Verdict
    reason: str
    because: Because = "mode"
    key: str = ""


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
        return PolicyVerdict(
            "deny", "mode plan changes nothing; the user can change it with /mode", key="reason.plan_mode"
        )
    if case.conflicts:
        return PolicyVerdict("ask", "someone else changed a file that the command changed, too", "conflict")
    if case.risk == "high":
        return _RISK
    if mode != "ask" and not case.changes:
        return PolicyVerdict("allow", "only build and ignored folders changed")
    if case.stopped:
        return PolicyVerdict("ask", "the command was stopped: the user decides what stays of it", "failed")
    if (mode == "ask" or (mode == "edits" and case.deletes)) and not case.remembered:
        what = "a delete" if mode == "edits" else "a change"
        return PolicyVerdict("ask", f"in mode {mode} the user is asked about {what}", "mode")
    return PolicyVerdict("allow", f"mode {mode} permits what it did")


def may_remember_effects(case: EffectsCase) -> bool:
    """Return whether to offer the answer "always": for changes, if the mode is the only reason to ask."""
    usual = case.risk in ("low", "medium") and not case.deletes
    return usual and not case.conflicts and not case.stopped


def may_remember(case: PolicyCase) -> bool:
    """Return whether to offer the answer "always": only if the mode is the only reason to ask."""
    held = case.effect in ("write", "foreign", "fetch") or (case.effect == "execute" and case.sandboxed)
    return held and case.risk in ("low", "medium") and case.protection == "none" and not case.outside


def _rules(mode: Mode, case: PolicyCase) -> Iterator[PolicyVerdict]:
    if case.protection == "denied" or case.risk == "forbidden":
        yield _OWN
    if case.outside and case.effect not in ("read", "execute"):
        yield PolicyVerdict("deny", "nothing outside the workspace may be changed", key="reason.stays_inside")
    if case.protection == "asks" or (case.protection == "guarded" and case.effect != "read"):
        yield PolicyVerdict("ask", "this path is protected: the user is asked every time", "protected")
    if case.outside:
        yield PolicyVerdict("ask", "it is outside the workspace: the user is asked", "outside")
    if case.effect == "execute" and not case.sandboxed and mode != "plan":
        yield PolicyVerdict(
            "ask", "there is no sandbox here: the user is asked about every command", "no_sandbox"
        )
    if case.effect == "consent":
        yield PolicyVerdict("ask", "only the user's own answer counts as consent", "consent")
    if case.risk == "high":
        yield _RISK


def _by_mode(mode: Mode, case: PolicyCase) -> PolicyVerdict:
    if case.effect == "execute" and case.copies and case.sandboxed:
        return PolicyVerdict("allow", "it works on a copy; what it did is judged afterwards")
    match MODES[mode][case.effect]:
        case "deny":
            return PolicyVerdict(
                "deny", f"mode {mode} only reads; the user can change it with /mode", key="reason.plan_mode"
            )
        case "ask" if case.remembered and may_remember(case):
            return PolicyVerdict("allow", "the user allowed this kind for the session")
        case "ask":
            return PolicyVerdict("ask", f"in mode {mode} the user is asked before a {case.effect}", "mode")
        case "allow":
            return PolicyVerdict("allow", f"mode {mode} permits to {case.effect}")


_OWN = PolicyVerdict(
    "deny", "it is closed to tools: Duckflow's own files, or a place for secrets", key="reason.own"
)
_RISK = PolicyVerdict("ask", "the risk is high: the user is asked", "risk")
