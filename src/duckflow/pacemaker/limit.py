"""Computes how many loops a request may take before the user is asked (I2, I4, I7)."""

from collections.abc import Mapping, Sequence
from typing import get_args

from duckflow.config.pacing import (
    BaseLoops,
    ComplexityScale,
    DynamicLimits,
    LearningSettings,
    LimitFactors,
    PacemakerSettings,
)
from duckflow.domain.decision import TaskProfile
from duckflow.domain.pacing.limits import Adjustment, LoopLimit
from duckflow.domain.pacing.vitals import Vitals

LAST_RESORT = 15
"""Limit if even the configuration is missing."""

EXACT = 9
"""Decimals to round to, so that 0.7 − 0.4 is not below 0.3 and 18 × 1.2 × 1.25 is 27."""


def compute_limit(
    profile: TaskProfile | None,
    vitals: Vitals | None,
    complexity: float,
    table: PacemakerSettings | None,
    used: int = 0,
    experience: Sequence[int] = (),
) -> LoopLimit:
    """Compute the limit and its reasons. After any error, use the configured maximum, otherwise 15.

    `experience`: loops used by earlier requests of this kind.
    """
    known = profile if profile in PROFILES else None
    try:
        if vitals is None or table is None:
            raise ValueError("there are no vitals" if table else "there is no table")  # noqa: TRY301
        return _compute(known, vitals, complexity, table, used, experience)
    except Exception as exc:  # noqa: BLE001 - I4: no fault in here may leave the work without a limit
        most = _most(table.dynamic_limits) if table else LAST_RESORT
        return LoopLimit(limit=max(most, used), profile=known, used=used, maximum=most, fallback=repr(exc))


def extend(limit: int, used: int, progressed: bool, maximum: int) -> int | None:  # noqa: FBT001
    """Extend a limit that is reached by half, if the last three loops made progress; None if it stays.

    `maximum` is the hard limit.
    """
    if used < limit or not progressed or limit >= maximum:
        return None
    return min(max(limit * 3 // 2, limit + 1), maximum)


def score_of(vitals: Vitals, factors: LimitFactors) -> float:
    """Combine all three vitals into one number."""
    weighed = (
        vitals.mood * factors.mood_weight
        + vitals.focus * factors.focus_weight
        + vitals.stamina * factors.stamina_weight
    )
    return round(weighed, EXACT)


def _compute(
    profile: TaskProfile | None,
    vitals: Vitals,
    complexity: float,
    table: PacemakerSettings,
    used: int,
    experience: Sequence[int],
) -> LoopLimit:
    table_base = loops_by_profile(table.base_loops)[profile]
    base = learned_base(table_base, experience, table.learning)
    score = score_of(vitals, table.factors)
    by_vitals = _vitals_factor(score, table.factors)
    by_complexity = round(1.0 + table.factors.complexity_weight * complexity, EXACT)
    product = round(base * by_vitals * by_complexity, EXACT)
    least, most = table.dynamic_limits.min_loops, _most(table.dynamic_limits)
    return LoopLimit(
        limit=max(min(max(int(product), least), most), used),
        profile=profile,
        base=base,
        table_base=table_base,
        learned_from=len(experience) if base != table_base else 0,
        vitals=vitals,
        vitals_score=score,
        vitals_factor=by_vitals,
        complexity=complexity,
        complexity_factor=by_complexity,
        product=product,
        minimum=min(least, most),
        maximum=most,
        used=used,
        adjustments=_adjustments(by_vitals, by_complexity),
    )


def _most(limits: DynamicLimits) -> int:
    return min(limits.max_loops, limits.hard_max_loops)


def _vitals_factor(score: float, factors: LimitFactors) -> float:
    if score < factors.low_score:
        return factors.low_factor
    return factors.high_factor if score > factors.high_score else 1.0


def _adjustments(by_vitals: float, by_complexity: float) -> tuple[Adjustment, ...]:
    found = (
        Adjustment(source="vitals", percent=round((by_vitals - 1) * 100)),
        Adjustment(source="complexity", percent=round((by_complexity - 1) * 100)),
    )
    return tuple(one for one in found if one.percent)


def measure(
    scale: ComplexityScale, *, files: int = 0, messages: int = 0, errors: int = 0, actions: int = 0
) -> float:
    """Return the complexity in 0..1: the mean of its three parts, each at most 1 (I3).

    Counts: files looked at, messages of the conversation, actions, and failed actions.
    """
    if not (files or messages or actions):
        return scale.when_unknown
    rate = errors / actions if actions else 0.0
    parts = (files / scale.most_files, messages / scale.most_messages, scale.error_weight * rate)
    return sum(min(part, 1.0) for part in parts) / len(parts)


ROOM = 1.5
"""Factor for a request's limit, relative to the loops that most requests of its kind used."""

MOST = 0.75
"""Share of earlier requests that counts as "most"."""


def learned_base(base: int, used: Sequence[int], learning: LearningSettings) -> int:
    """Return the base loops for a kind of task, learned from the loops of completed requests of this kind."""
    if not learning.enabled or len(used) < learning.least_requests:
        return base
    in_order = sorted(used)
    usual = in_order[int(MOST * (len(in_order) - 1))]
    lowest, highest = round(base * (1 - learning.reach)), round(base * (1 + learning.reach))
    return min(max(round(usual * ROOM), lowest), highest)


PROFILES: tuple[TaskProfile, ...] = get_args(TaskProfile)


def loops_by_profile(table: BaseLoops) -> Mapping[TaskProfile | None, int]:
    """Return the base loops of every profile; None stands for an unknown kind of task."""
    return {**{profile: getattr(table, profile) for profile in PROFILES}, None: table.unknown}
