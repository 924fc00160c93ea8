"""The next move after a loop: one small rule for each reason not simply to go on, in their order (SPEC H5).

Aegis is the rule that halts when stamina is gone; the Oracle is the consultation with the health report.
"""

from collections.abc import Callable
from typing import Literal

from duckflow.config.pacing import PacemakerSettings, Thresholds
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
    """Nothing speaks against another loop."""

    cause: Cause = "well"


class Extend(Frozen):
    """The limit is reached and the work gets on: another limit. Work out stamina again, then ask again."""

    limit: int
    cause: Cause = "limit"


class Replan(Frozen):
    """Back to planning, with focus set accordingly."""

    cause: Cause = "focus"


class Consult(Frozen):
    """Ask the user how to go on."""

    kind: ConsultationKind
    cause: Cause


Move = Go | Extend | Replan | Consult


class Situation(Frozen):
    """All that the rules look at, as it is after a loop."""

    vitals: Vitals
    next_step: NextStep = "continue"
    loops: int
    limit: int
    progressed: bool = False
    """Whether one of the last three loops got on."""
    repeated: bool = False
    """Whether the last loop repeated what was done before; to announce and to plan again is no repetition."""
    replanned: bool = False
    """Whether there was a replan since the user last spoke."""
    confident: bool = True
    """Whether mood was well since the user was last asked about it."""
    sure: bool = False
    """Whether the model itself is sure: then only failures can have brought mood down."""
    budget: BudgetLevel = BudgetLevel()


Rule = Callable[[Situation, PacemakerSettings], Move | None]


def next_move(situation: Situation, table: PacemakerSettings) -> Move:
    """What the first rule that has something to say says, else go on."""
    for rule in RULES:
        move = rule(situation, table)
        if move is not None:
            return move
    return Go()


def low_vitals(vitals: Vitals, thresholds: Thresholds) -> tuple[VitalName, ...]:
    """The vitals that are low."""
    return tuple(name for name in VITALS if getattr(vitals, name) < getattr(thresholds, name))


def stays_confident(situation: Situation, move: Move, thresholds: Thresholds) -> bool:
    """The next situation's `confident`: lost when mood is asked about, back when it is well again."""
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
        low.discard("mood")  # the same failures brought both down: that is one finding, and it has a name
    return Consult(kind="oracle", cause="vitals") if len(low) > 1 else None


def _limit(situation: Situation, _table: PacemakerSettings) -> Move | None:
    if situation.loops < situation.limit:
        return None
    return Consult(kind="over_exertion" if situation.progressed else "stagnation", cause="limit")


def _focus(situation: Situation, table: PacemakerSettings) -> Move | None:
    """Stagnation if actions repeat, confusion if none is taken.

    What else lowers focus comes from the user's messages or happens once, so after a replan it can't bring
    focus down again: confusion by these alone would never be met.
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
"""Their order is part of what was promised; the Oracle speaks before every single vital would."""
