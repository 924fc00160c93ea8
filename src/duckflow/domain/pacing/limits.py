"""What the pacemaker leaves behind for state, events and screens: limits, their reasons, traces of loops."""

import hashlib
import json
import posixpath
from typing import Literal

from pydantic import JsonValue

from duckflow.domain.decision import Action, TaskProfile
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.vitals import FocusEvent, Vitals

TRACES_KEPT = 20
"""Traces kept for a request; the oldest goes first."""

_PATHS = ("path", "to")
_DIGEST = 16


class Adjustment(Frozen):
    """What made a limit differ from its base: 20 is a fifth more, -30 is three tenths less."""

    source: Literal["vitals", "complexity"]
    percent: int


class LoopLimit(Frozen):
    """How many loops a request may take, and everything that number was made of (SPEC I2)."""

    limit: int
    profile: TaskProfile | None = None
    base: int = 0
    table_base: int = 0
    """What the table says, where earlier requests have taught otherwise; else the same."""
    learned_from: int = 0
    """How many earlier requests that was learned from."""
    vitals: Vitals = Vitals.model_construct()
    vitals_score: float = 1.0
    vitals_factor: float = 1.0
    complexity: float = 0.0
    complexity_factor: float = 1.0
    product: float = 0.0
    """Base times factors, before it is cut to a whole number between the bounds."""
    minimum: int = 0
    maximum: int = 0
    used: int = 0
    """Loops that were used already when it was worked out; it is never below them."""
    adjustments: tuple[Adjustment, ...] = ()
    fallback: str | None = None
    """What went wrong, where it could not be worked out and the configured maximum holds (SPEC I4)."""


class PastAction(Frozen):
    """An action that ran, in so few characters that many can be kept and compared."""

    call: str
    operation: str
    target: str
    """The file it speaks of, else the operation."""
    result: str
    failed: bool = False
    refused: bool = False
    """Whether the user or a rule said no: it did not run, and that is no failure."""
    changed: bool = False
    on_file: bool = False
    version: str = ""
    """Of a file that was read: what it held."""
    first: int = 0
    end: int = 0
    """Of a file that was read: the first line shown and the one after the last."""
    before: str = ""
    after: str = ""
    """Of a file that a file tool changed: what it held before and after."""


class LoopTrace(Frozen):
    """What one loop did, to be compared with others."""

    calls: tuple[str, ...] = ()
    """The decision's whole list, what did not run included."""
    acts: tuple[PastAction, ...] = ()
    fresh: bool = False
    """Whether the user spoke since the loop before."""
    disturbed: bool = False
    """Whether something else changed the workspace since the loop before, or a background task ended."""
    unseen: tuple[str, ...] = ()
    """Files that loops of this request changed and that were not looked at since."""
    idle: bool = False
    """Whether it wanted to go on and did nothing."""
    stepped: bool = False
    """Whether it moved to another step."""
    noted: tuple[str, ...] = ()
    """What it set of goal, constraints and open questions."""
    plan: tuple[str, ...] = ()
    """The plan it set, in the model's words."""
    gains: tuple[FocusEvent, ...] = ()
    """In what way it got on."""
    progressed: bool = False
    """Whether it got on, or a requirement is better met than before."""
    repeated: bool = False
    """Whether it only did again what was done before."""

    @property
    def changed(self) -> bool:
        """Whether one of its actions changed the workspace."""
        return any(act.changed for act in self.acts)


def digest_of(text: str) -> str:
    """A short name for a text that is the same for the same text only."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def call_of(action: Action) -> str:
    """A short name for an operation with its arguments, in whatever order and however paths are written."""
    args = {name: _plain(name, value) for name, value in action.args.items()}
    meant = {name: value for name, value in args.items() if value is not None}
    return digest_of(json.dumps([action.operation.strip(), meant], sort_keys=True))


def _plain(name: str, value: JsonValue) -> JsonValue:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    if name == "command":
        return " ".join(value.split())
    if name in _PATHS:
        path = posixpath.normpath(value.strip() or ".")
        return None if path == "." else path
    return value
