"""Computes how many loops a request may take before the user is asked (I2, I4, I7)."""

from collections.abc import Mapping, Sequence

from duckflow.config.settings import DynamicLimits
from duckflow.domain.decision import TaskProfile
from duckflow.domain.pacing.limits import Adjustment, LoopLimit
from duckflow.domain.pacing.vitals import VitalName, Vitals

BASE_LOOPS: Mapping[TaskProfile | None, int] = {
    "simple_question": 5,
    "code_analysis": 12,
    "file_operation": 8,
    "complex_reasoning": 18,
    "multi_step_task": 15,
    "general_chat": 6,
    "creative_writing": 10,
    "debugging": 14,
    "research": 16,
    None: 8,
}
"""Loops for each kind of task (None: unknown kind), before vitals and complexity change the number (I1)."""

MIN_LOOPS = 3
"""Smallest loop limit of a request, unless the configured maximum is lower."""

LAST_RESORT = 15
"""Loop limit if even the configuration is missing."""

VITAL_WEIGHTS: Mapping[VitalName, float] = {"mood": 0.4, "focus": 0.4, "stamina": 0.2}
"""Weights of the vitals in their combined score."""

LOW_SCORE, LOW_FACTOR = 0.4, 0.7
HIGH_SCORE, HIGH_FACTOR = 0.8, 1.2
"""The loops are multiplied by a low factor below the low score, and by a high factor above the high score."""

COMPLEXITY_WEIGHT = 0.4
"""Share by which the loops increase at full complexity."""

MOST_FILES, MOST_MESSAGES, ERROR_WEIGHT = 8, 15, 3.0
"""Files and messages that count as fully complex, and the weight of the share of failed actions."""

UNKNOWN_COMPLEXITY = 0.3
"""Complexity while nothing is known."""

LEAST_REQUESTS = 8
"""Number of completed requests of a kind that are needed to learn from them."""

REACH = 0.25
"""Largest deviation of a learned number of loops from the table, as a share."""

ROOM = 1.5
"""Factor by which the limit exceeds the loops that most requests of the same kind used."""

MOST = 0.75
"""Share of earlier requests that counts as "most"."""

EXACT = 9
"""Number of decimals to round to. Without rounding, 0.7 - 0.4 would be below 0.3."""


def compute_limit(
    profile: TaskProfile | None,
    vitals: Vitals | None,
    complexity: float,
    limits: DynamicLimits | None,
    used: int = 0,
    experience: Sequence[int] = (),
) -> LoopLimit:
    """Compute the loop limit. `experience`: loops of similar requests. After an error: maximum or 15."""
    known = profile if profile in BASE_LOOPS else None
    most = min(limits.max_loops, limits.hard_max_loops) if limits else LAST_RESORT
    try:
        if vitals is None or limits is None:
            raise ValueError("there are no vitals" if limits else "there are no limits")  # noqa: TRY301
        table_base = BASE_LOOPS[known]
        base = learned_base(table_base, experience)
        score = score_of(vitals)
        by_vitals = LOW_FACTOR if score < LOW_SCORE else HIGH_FACTOR if score > HIGH_SCORE else 1.0
        by_complexity = round(1.0 + COMPLEXITY_WEIGHT * complexity, EXACT)
        product = round(base * by_vitals * by_complexity, EXACT)
        adjusted = (
            Adjustment(source="vitals", percent=round((by_vitals - 1) * 100)),
            Adjustment(source="complexity", percent=round((by_complexity - 1) * 100)),
        )
        return LoopLimit(
            limit=max(min(max(int(product), MIN_LOOPS), most), used),
            profile=known,
            base=base,
            table_base=table_base,
            learned_from=len(experience) if base != table_base else 0,
            vitals=vitals,
            vitals_score=score,
            vitals_factor=by_vitals,
            complexity=complexity,
            complexity_factor=by_complexity,
            product=product,
            minimum=min(MIN_LOOPS, most),
            maximum=most,
            used=used,
            adjustments=tuple(one for one in adjusted if one.percent),
        )
    except Exception as exc:  # noqa: BLE001 - I4: no fault in here may leave the work without a limit
        return LoopLimit(limit=max(most, used), profile=known, used=used, maximum=most, fallback=repr(exc))


def extend(limit: int, used: int, progressed: bool, maximum: int) -> int | None:  # noqa: FBT001
    """Raise a reached limit by half, but not above `maximum`. None without recent progress."""
    if used < limit or not progressed or limit >= maximum:
        return None
    return min(max(limit * 3 // 2, limit + 1), maximum)


def score_of(vitals: Vitals) -> float:
    """Combine the three vitals into one number."""
    return round(sum(getattr(vitals, name) * weight for name, weight in VITAL_WEIGHTS.items()), EXACT)


def measure(*, files: int = 0, messages: int = 0, errors: int = 0, actions: int = 0) -> float:
    """Return the complexity from 0 to 1: the mean of three parts, each at most 1 (I3)."""
    if not (files or messages or actions):
        return UNKNOWN_COMPLEXITY
    rate = errors / actions if actions else 0.0
    parts = (files / MOST_FILES, messages / MOST_MESSAGES, ERROR_WEIGHT * rate)
    return sum(min(part, 1.0) for part in parts) / len(parts)


def learned_base(base: int, used: Sequence[int]) -> int:
    """Return the loops for a kind of task, learned from the loops of completed requests of this kind."""
    if len(used) < LEAST_REQUESTS:
        return base
    in_order = sorted(used)
    usual = in_order[int(MOST * (len(in_order) - 1))]
    lowest, highest = round(base * (1 - REACH)), round(base * (1 + REACH))
    return min(max(round(usual * ROOM), lowest), highest)
