"""Why the limit is what it is, line by line, as catalogue keys and values (SPEC I5)."""

from collections.abc import Iterator
from typing import Literal

from duckflow.domain.pacing.limits import Adjustment, LoopLimit, ReasonLine
from duckflow.domain.pacing.vitals import Vitals

VITAL_LOW, VITAL_HIGH = 0.5, 0.8
COMPLEXITY_LOW, COMPLEXITY_HIGH = 0.3, 0.7

VitalWord = Literal["low", "usual", "high"]
ComplexityWord = Literal["low", "medium", "high"]


def explain(limit: LoopLimit) -> tuple[ReasonLine, ...]:
    """The whole reason, a line for each part of it."""
    if limit.fallback is not None:
        values = {"limit": limit.limit, "reason": limit.fallback}
        return (ReasonLine(key="limit.fallback", values={**values}),)
    return tuple(_lines(limit))


def explain_extension(before: int, after: int) -> ReasonLine:
    """That there are more loops than at first, and why."""
    return ReasonLine(key="limit.extended", values={"before": before, "limit": after})


def vital_word(value: float) -> VitalWord:
    """A vital in a word."""
    if value < VITAL_LOW:
        return "low"
    return "high" if value > VITAL_HIGH else "usual"


def complexity_word(value: float) -> ComplexityWord:
    """Complexity in a word."""
    if value < COMPLEXITY_LOW:
        return "low"
    return "high" if value > COMPLEXITY_HIGH else "medium"


def _lines(limit: LoopLimit) -> Iterator[ReasonLine]:
    yield ReasonLine(key=f"limit.task.{limit.profile or 'unknown'}", values={"base": limit.base})
    if limit.learned_from:
        values = {"count": limit.learned_from, "base": limit.base, "table": limit.table_base}
        yield ReasonLine(key="limit.learned", values={**values})
    yield from _vitals(limit.vitals)
    word = complexity_word(limit.complexity)
    yield ReasonLine(key=f"limit.complexity.{word}", values={"value": f"{limit.complexity:.2f}"})
    yield from map(_adjustment, limit.adjustments)
    if not limit.adjustments:
        yield ReasonLine(key="limit.adjustment.none")
    yield ReasonLine(
        key="limit.arithmetic",
        values={
            "base": limit.base,
            "vitals": f"{limit.vitals_factor:.2f}",
            "complexity": f"{limit.complexity_factor:.2f}",
            "product": f"{limit.product:.2f}",
        },
    )
    bounds = {"limit": limit.limit, "minimum": limit.minimum, "maximum": limit.maximum}
    yield ReasonLine(key="limit.result", values={**bounds})
    if limit.limit == limit.used:
        yield ReasonLine(key="limit.used", values={"used": limit.used})


def _vitals(vitals: Vitals) -> Iterator[ReasonLine]:
    for name, value in (("mood", vitals.mood), ("focus", vitals.focus), ("stamina", vitals.stamina)):
        yield ReasonLine(key=f"limit.vital.{name}_{vital_word(value)}", values={"value": f"{value:.2f}"})


def _adjustment(adjustment: Adjustment) -> ReasonLine:
    way = "more" if adjustment.percent > 0 else "less"
    return ReasonLine(
        key=f"limit.adjustment.{adjustment.source}_{way}", values={"percent": abs(adjustment.percent)}
    )
