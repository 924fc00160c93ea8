"""May it? One function answers deny, ask or allow, from tables (SPEC G3)."""

from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.state import Mode
from duckflow.safety.protected import Protection

Effect = Literal["read", "write", "delete", "execute", "consent"]
"""What an operation does; "consent" says yes in the user's name, which only the user can do."""

Verdict = Literal["allow", "ask", "deny"]


class Ruling(Frozen):
    """The verdict, with its reason in words for the model."""

    verdict: Verdict
    reason: str


_EDITS: dict[Effect, Verdict] = {
    "read": "allow",
    "write": "allow",
    "delete": "ask",
    "execute": "ask",
    "consent": "ask",
}

MODES: dict[Mode, dict[Effect, Verdict]] = {
    "plan": {"read": "allow", "write": "deny", "delete": "deny", "execute": "deny", "consent": "ask"},
    "ask": {"read": "allow", "write": "ask", "delete": "ask", "execute": "ask", "consent": "ask"},
    "edits": _EDITS,
    "auto": _EDITS,  # without a sandbox `auto` is `edits`
}


def decide(mode: Mode, effect: Effect, protection: Protection) -> Ruling:
    """Whether an action with this effect may be taken in this mode, on what is protected so."""
    if protection == "denied":
        return Ruling(verdict="deny", reason="this path belongs to Duckflow itself and is closed to tools")
    if protection == "asks" and mode == "plan":
        return Ruling(verdict="deny", reason="this path is protected and mode plan asks no questions")
    if protection == "asks":
        return Ruling(verdict="ask", reason="this path is protected: the user is asked every time")
    verdict = MODES[mode][effect]
    if effect == "consent":
        return Ruling(verdict=verdict, reason="only the user's own answer counts as consent")
    return Ruling(verdict=verdict, reason=_REASONS[verdict].format(mode=mode, effect=effect))


_REASONS: dict[Verdict, str] = {
    "allow": "mode {mode} permits to {effect}",
    "ask": "in mode {mode} the user is asked before a {effect}",
    "deny": "mode {mode} only reads; the user can change it with /mode",
}
