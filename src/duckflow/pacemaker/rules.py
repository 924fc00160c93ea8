"""The next move after a loop (H5): Aegis stops the work at low stamina, the Oracle asks the user."""

from collections.abc import Iterator
from typing import Literal

from duckflow.config.settings import PacemakerSettings, Thresholds
from duckflow.domain.decision import NextStep
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.vitals import VITALS, VitalName, Vitals
from duckflow.domain.questions.consultation import ConsultationKind
from duckflow.pacemaker.budget import BudgetLevel
from duckflow.pacemaker.limit import extend

Cause = (
    Literal["well", "budget", "limit", "vitals", "focus", "stamina", "mood", "errors", "attempts", "model"]
    | Literal["no", "again"]
)


class Go(Frozen):
    """Continue with another loop."""

    cause: Cause = "well"


class Extend(Frozen):
    """Extend the limit because the work makes progress. Then stamina and the rules are computed again."""

    limit: int
    cause: Cause = "limit"


class Replan(Frozen):
    """Return to planning, and set focus for a new plan."""

    cause: Cause = "focus"


class Consult(Frozen):
    """Ask the user how to proceed."""

    kind: ConsultationKind
    cause: Cause


Move = Go | Extend | Replan | Consult


class Situation(Frozen):
    """Facts after a loop, from which the rules choose a move."""

    vitals: Vitals
    next_step: NextStep = "continue"
    loops: int
    limit: int
    progressed: bool = False
    """True if one of the last three loops made progress."""
    repeated: bool = False
    """True if the last loop repeated earlier actions, not if it only announced or replanned."""
    replanned: bool = False
    """True if there was a replan after the user's last message."""
    confident: bool = True
    """False once the user was asked about low mood, and true again when mood has recovered."""
    sure: bool = False
    """True if the model is sure of itself, in which case only failures can have lowered mood."""
    budget: BudgetLevel = BudgetLevel()


def next_move(situation: Situation, table: PacemakerSettings) -> Move:
    """Return the first move that the rules give a reason for, otherwise Go."""
    return next(_moves(situation, table), Go())


def low_vitals(vitals: Vitals, thresholds: Thresholds) -> tuple[VitalName, ...]:
    """Return the names of the vitals that are low."""
    return tuple(name for name in VITALS if getattr(vitals, name) < getattr(thresholds, name))


def stays_confident(situation: Situation, move: Move, thresholds: Thresholds) -> bool:
    """Return the new `confident`: False after a question about mood, True when mood has recovered."""
    if situation.vitals.mood >= thresholds.mood:
        return True
    return situation.confident and move.cause not in ("mood", "vitals")


def _moves(now: Situation, table: PacemakerSettings) -> Iterator[Move]:
    """Yield the moves for which there is a reason, in order of priority."""
    if now.budget.level == "spent":
        yield Consult(kind="over_exertion", cause="budget")
    longer = extend(now.limit, now.loops, now.progressed, table.dynamic_limits.hard_max_loops)
    if longer is not None:
        yield Extend(limit=longer)
    low = low_vitals(now.vitals, table.thresholds)
    # If a model that is sure of itself repeats failures, low mood and low focus have the same cause.
    same_finding = now.repeated and now.sure and "focus" in low and "mood" in low
    if len(low) - same_finding > 1:
        yield Consult(kind="oracle", cause="vitals")
    if now.loops >= now.limit:
        yield Consult(kind="over_exertion" if now.progressed else "stagnation", cause="limit")
    if "focus" in low and not now.replanned:
        yield Replan()
    elif "focus" in low:
        yield Consult(kind="stagnation" if now.repeated else "confusion", cause="focus")
    if "stamina" in low:
        yield Consult(kind="over_exertion", cause="stamina")
    if "mood" in low and now.confident and now.next_step == "continue":
        yield Consult(kind="lost_confidence", cause="mood")
