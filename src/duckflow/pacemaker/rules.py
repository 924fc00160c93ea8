"""The next move after a loop (H5). Aegis halts at low stamina; the Oracle asks with a health report."""

from collections.abc import Iterator
from typing import Literal

from duckflow.config.settings import PacemakerSettings, Thresholds
from duckflow.domain.decision import NextStep
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.vitals import VITALS, VitalName, Vitals
from duckflow.domain.questions.consultation import ConsultationKind
from duckflow.pacemaker.budget import BudgetLevel
from duckflow.pacemaker.limit import extend

Cause = Literal[
    "well", "budget", "limit", "vitals", "focus", "stamina", "mood", "errors", "attempts", "model"
]


class Go(Frozen):
    """Continue with another loop."""

    cause: Cause = "well"


class Extend(Frozen):
    """Extend the limit because the work makes progress; then recompute stamina and apply the rules again."""

    limit: int
    cause: Cause = "limit"


class Replan(Frozen):
    """Return to planning, and set focus accordingly."""

    cause: Cause = "focus"


class Consult(Frozen):
    """Ask the user how to proceed."""

    kind: ConsultationKind
    cause: Cause


Move = Go | Extend | Replan | Consult


class Situation(Frozen):
    """Input of the rules after a loop."""

    vitals: Vitals
    next_step: NextStep = "continue"
    loops: int
    limit: int
    progressed: bool = False
    """True if one of the last three loops made progress."""
    repeated: bool = False
    """True if the last loop repeated earlier actions; announcing and replanning do not count."""
    replanned: bool = False
    """True if there was a replan since the user last spoke."""
    confident: bool = True
    """False from a question about low mood until mood recovers."""
    sure: bool = False
    """True if the model itself is sure: then only failures can have lowered mood."""
    budget: BudgetLevel = BudgetLevel()


def next_move(situation: Situation, table: PacemakerSettings) -> Move:
    """Return the first move that has a reason, otherwise continue."""
    return next(_moves(situation, table), Go())


def low_vitals(vitals: Vitals, thresholds: Thresholds) -> tuple[VitalName, ...]:
    """Return the vitals that are low."""
    return tuple(name for name in VITALS if getattr(vitals, name) < getattr(thresholds, name))


def stays_confident(situation: Situation, move: Move, thresholds: Thresholds) -> bool:
    """Return the next `confident`: false after a question about mood, true again once mood has recovered."""
    if situation.vitals.mood >= thresholds.mood:
        return True
    return situation.confident and move.cause not in ("mood", "vitals")


def _moves(now: Situation, table: PacemakerSettings) -> Iterator[Move]:
    """Yield the moves that have a reason, in the promised order; the Oracle precedes single vitals."""
    if now.budget.level == "spent":
        yield Consult(kind="over_exertion", cause="budget")
    longer = extend(now.limit, now.loops, now.progressed, table.dynamic_limits.hard_max_loops)
    if longer is not None:
        yield Extend(limit=longer)
    low = low_vitals(now.vitals, table.thresholds)
    # If a sure model repeats failures, these have lowered both mood and focus, which counts as one finding.
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
