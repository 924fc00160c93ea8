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
"""Verdict of each mode on each effect, unless a rule is stricter."""


class PolicyCase(NamedTuple):
    """Facts about an action on which the policy decides."""

    effect: ToolEffect
    risk: Risk = "low"
    protection: Protection = "none"
    outside: bool = False
    """True if the action reaches outside the workspace."""
    sandboxed: bool = False
    """True if a working sandbox would confine the command."""
    copies: bool = False
    """True if the command would run on a copy, so that its effects are judged afterwards."""
    external: bool = False
    """True if the user has declared the whole machine to be the sandbox."""
    remembered: bool = False
    """True if the user answered "always" for this kind of action."""


class PolicyVerdict(Frozen):
    """Verdict, the category of its cause, and the reason in words for the model."""

    verdict: Verdict
    reason: str
    because: Because = "mode"


def decide(mode: Mode, case: PolicyCase) -> PolicyVerdict:
    """Return the strictest ruling on an action."""
    rulings = (*_rules(mode, case), _by_mode(effective(mode, copies=case.copies or case.external), case))
    return max(rulings, key=lambda ruling: STRICTER[ruling.verdict])


def effective(mode: Mode, *, copies: bool) -> Mode:
    """Return the mode to apply.

    `auto` counts as `edits`, unless commands run on copies or the user declared the machine to be the
    sandbox.
    """
    return "edits" if mode == "auto" and not copies else mode


class EffectsCase(NamedTuple):
    """Facts on which the policy decides after a command has run on its copy."""

    risk: Risk = "low"
    changes: bool = True
    """True if anything changed outside build and ignored folders."""
    deletes: bool = False
    conflicts: bool = False
    stopped: bool = False
    """True if the command was stopped, so that its changes to project files may be incomplete."""
    remembered: bool = False


def decide_effects(mode: Mode, case: EffectsCase) -> PolicyVerdict:
    """Decide whether to apply a command's effects (allow), ask about them, or discard them (deny)."""
    if case.risk == "forbidden":
        return _OWN
    if mode == "plan":
        return PolicyVerdict(
            verdict="deny", reason="mode plan changes nothing; the user can change it with /mode"
        )
    if case.conflicts:
        return _CONFLICT
    if case.risk == "high":
        return _RISK
    if mode != "ask" and not case.changes:
        return PolicyVerdict(verdict="allow", reason="only build and ignored folders changed")
    if case.stopped:
        return _STOPPED
    asks = mode == "ask" or (mode == "edits" and case.deletes)
    if asks and not case.remembered:
        what = "a delete" if mode == "edits" else "a change"
        return PolicyVerdict(verdict="ask", reason=f"in mode {mode} the user is asked about {what}")
    return PolicyVerdict(verdict="allow", reason=f"mode {mode} permits what it did")


def may_remember_effects(case: EffectsCase) -> bool:
    """Return whether to offer "always": only if the mode is the only reason to ask."""
    return case.risk in ("low", "medium") and not case.conflicts and not case.stopped


def may_remember(case: PolicyCase) -> bool:
    """Return whether to offer "always": only if the mode is the only reason to ask."""
    held = case.effect in ("write", "foreign", "fetch") or (case.effect == "execute" and case.sandboxed)
    return held and case.risk in ("low", "medium") and case.protection == "none" and not case.outside


def _rules(mode: Mode, case: PolicyCase) -> Iterator[PolicyVerdict]:
    """Yield the rulings that apply in every mode."""
    if case.protection == "denied" or case.risk == "forbidden":
        yield _OWN
    if case.outside and case.effect not in ("read", "execute"):
        yield _CHANGES_OUTSIDE
    if case.protection == "asks" or (case.protection == "guarded" and case.effect != "read"):
        yield _PROTECTED
    if case.outside:
        yield _OUTSIDE
    if case.effect == "execute" and not case.sandboxed and mode != "plan":
        yield _NO_SANDBOX
    if case.effect == "consent":
        yield _CONSENT
    if case.risk == "high":
        yield _RISK


def _by_mode(mode: Mode, case: PolicyCase) -> PolicyVerdict:
    if case.effect == "execute" and case.copies and case.sandboxed:
        return PolicyVerdict(verdict="allow", reason="it works on a copy; what it did is judged afterwards")
    verdict = MODES[mode][case.effect]
    if verdict == "ask" and case.remembered and may_remember(case):
        return PolicyVerdict(verdict="allow", reason="the user allowed this kind for the session")
    return PolicyVerdict(verdict=verdict, reason=_REASONS[verdict].format(mode=mode, effect=case.effect))


_OWN = PolicyVerdict(
    verdict="deny", reason="it is closed to tools: Duckflow's own files, or a place for secrets"
)
_CHANGES_OUTSIDE = PolicyVerdict(verdict="deny", reason="nothing outside the workspace may be changed")
_PROTECTED = PolicyVerdict(
    verdict="ask", because="protected", reason="this path is protected: the user is asked every time"
)
_OUTSIDE = PolicyVerdict(
    verdict="ask", because="outside", reason="it is outside the workspace: the user is asked"
)
_NO_SANDBOX = PolicyVerdict(
    verdict="ask",
    because="no_sandbox",
    reason="there is no sandbox here: the user is asked about every command",
)
_CONSENT = PolicyVerdict(
    verdict="ask", because="consent", reason="only the user's own answer counts as consent"
)
_CONFLICT = PolicyVerdict(
    verdict="ask", because="conflict", reason="someone else changed a file that the command changed, too"
)
_STOPPED = PolicyVerdict(
    verdict="ask", because="failed", reason="the command was stopped: the user decides what stays of it"
)
_RISK = PolicyVerdict(verdict="ask", because="risk", reason="the risk is high: the user is asked")

_REASONS: dict[Verdict, str] = {
    "allow": "mode {mode} permits to {effect}",
    "ask": "in mode {mode} the user is asked before a {effect}",
    "deny": "mode {mode} only reads; the user can change it with /mode",
}
