"""Data of the pacemaker: loop limits, their reasons, and traces of loops."""

import hashlib
import json
import posixpath
from typing import Literal

from pydantic import JsonValue

from duckflow.domain.decision import Action, TaskProfile
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.vitals import FocusEvent, Vitals

TRACES_KEPT = 20
"""Number of traces to keep for a request. The oldest are dropped first."""

_PATHS = ("path", "to")
_DIGEST = 16


class Adjustment(Frozen):
    """Change of the limit in percent: 20 means a fifth more, -30 means three tenths less."""

    source: Literal["vitals", "complexity"]
    percent: int


class LoopLimit(Frozen):
    """Maximum number of loops of a request, and every figure it was computed from (I2)."""

    limit: int
    profile: TaskProfile | None = None
    base: int = 0
    table_base: int = 0
    """Base loops from the table; differs from `base` if earlier requests changed it."""
    learned_from: int = 0
    """Number of earlier requests that the base was learned from."""
    vitals: Vitals = Vitals.model_construct()
    vitals_score: float = 1.0
    vitals_factor: float = 1.0
    complexity: float = 0.0
    complexity_factor: float = 1.0
    product: float = 0.0
    """Base times factors, before it is rounded and kept within the bounds."""
    minimum: int = 0
    maximum: int = 0
    used: int = 0
    """Loops that were already used when the limit was computed. The limit is never below this number."""
    adjustments: tuple[Adjustment, ...] = ()
    fallback: str | None = None
    """Error that prevented the computation. The configured maximum is then the limit (I4)."""


class PastAction(Frozen):
    """An action that ran, in short form, so that many can be kept and compared."""

    call: str
    operation: str
    target: str
    """File that the action worked on; if none, the name of the operation."""
    result: str
    failed: bool = False
    refused: bool = False
    """True if the user or a rule refused the action. It did not run, which is not a failure."""
    declined: bool = False
    """True if it was the user who refused it. Proposing it again is no repetition: the user is asked."""
    changed: bool = False
    on_file: bool = False
    version: str = ""
    """For a file that was read: digest of its content."""
    first: int = 0
    end: int = 0
    """If a file was read: `first` is the first line shown, `end` the line after the last one."""
    before: str = ""
    after: str = ""
    """If a file tool changed a file: hashes of its content `before` and `after`."""


class LoopTrace(Frozen):
    """Actions and progress of one loop, for comparison with other loops."""

    calls: tuple[str, ...] = ()
    """All actions of the decision, including those that did not run."""
    acts: tuple[PastAction, ...] = ()
    fresh: bool = False
    """True if the user wrote something after the previous loop."""
    disturbed: bool = False
    """True if something other than these loops changed the workspace, or a background task ended."""
    unseen: tuple[str, ...] = ()
    """Files that loops of this request changed and that no later action has shown."""
    idle: bool = False
    """True if the model wanted to continue but ran no action."""
    stepped: bool = False
    """True if the model moved to another step."""
    noted: tuple[str, ...] = ()
    """Hashes of the goal, constraints and open questions that the loop set."""
    plan: tuple[str, ...] = ()
    """Plan that the loop set, in the model's words."""
    gains: tuple[FocusEvent, ...] = ()
    """Kinds of progress the loop made."""
    progressed: bool = False
    """True if the loop made progress or a requirement is better met than before."""
    repeated: bool = False
    """True if the loop only repeated earlier actions."""

    @property
    def changed(self) -> bool:
        """True if an action of the loop changed the workspace."""
        return any(act.changed for act in self.acts)


def digest_of(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def call_of(action: Action) -> str:
    """Return a short hash of an operation and its arguments. Their order and path notation do not matter."""
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
