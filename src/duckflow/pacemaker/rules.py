"""The next move after a loop: one small rule for each reason not to continue, in order (H5).

Aegis is the rule that halts when stamina is used up; the Oracle is the consultation with the health report.
"""

from collections.abc import Callable
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


Rule = Callable[[Situation, PacemakerSettings], Move | None]


def next_move(situation: Situation, table: PacemakerSettings) -> Move:
    """Return the move of the first rule that applies, otherwise continue."""
    for rule in RULES:
        move = rule(situation, table)
        if move is not None:
            return move
    return Go()


def low_vitals(vitals: Vitals, thresholds: Thresholds) -> tuple[VitalName, ...]:
    """Return the vitals that are low."""
    return tuple(name for name in VITALS if getattr(vitals, name) < getattr(thresholds, name))


def stays_confident(situation: Situation, move: Move, thresholds: Thresholds) -> bool:
    """Return the next `confident`: false after a question about mood, true again once mood has recovered."""
    if situation.vitals.mood >= thresholds.mood:
        return True
    return situation.confident and move.cause not in ("mood", "vitals")


def _budget(situation: Situation, _table: PacemakerSettings) -> Move | None:
    return Consult(kind="over_exertion", cause="budget") if situation.budget.level == "spent" else None


def _extension(situation: Situation, table: PacemakerSettings) -> Move | None:
    maximum = table.dynamic_limits.hard_max_loops
    limit = extend(situation.limit, situation.loops, situation.progressed, maximum)
    return Extend(limit=limit) if limit is not None else None


def _oracle(situation: Situation, table: PacemakerSettings) -> Move | None:
    low = set(low_vitals(situation.vitals, table.thresholds))
    if situation.repeated and situation.sure and "focus" in low:
        low.discard("mood")  # the same failures lowered both, so this counts as one finding: repetition
    return Consult(kind="oracle", cause="vitals") if len(low) > 1 else None


def _limit(situation: Situation, _table: PacemakerSettings) -> Move | None:
    if situation.loops < situation.limit:
        return None
    return Consult(kind="over_exertion" if situation.progressed else "stagnation", cause="limit")


def _focus(situation: Situation, table: PacemakerSettings) -> Move | None:
    """Return stagnation if actions repeat, confusion if none is taken.

    Other causes of low focus come from the user's messages or occur once, so they can't lower it again after
    a replan: confusion from these alone would never occur.
    """
    if situation.vitals.focus >= table.thresholds.focus:
        return None
    if not situation.replanned:
        return Replan()
    return Consult(kind="stagnation" if situation.repeated else "confusion", cause="focus")


def _stamina(situation: Situation, table: PacemakerSettings) -> Move | None:
    low = situation.vitals.stamina < table.thresholds.stamina
    return Consult(kind="over_exertion", cause="stamina") if low else None


def _mood(situation: Situation, table: PacemakerSettings) -> Move | None:
    low = situation.vitals.mood < table.thresholds.mood
    asks = low and situation.confident and situation.next_step == "continue"
    return Consult(kind="lost_confidence", cause="mood") if asks else None


RULES: tuple[Rule, ...] = (_budget, _extension, _oracle, _limit, _focus, _stamina, _mood)
"""All rules in the promised order; the Oracle precedes the rules for single vitals."""
