"""Explains a loop limit line by line, as catalogue keys and values (I5)."""

from collections.abc import Iterator

from duckflow.domain.lines import TextLine, line
from duckflow.domain.pacing.limits import LoopLimit
from duckflow.domain.pacing.vitals import VITALS

VITAL_LOW, VITAL_HIGH = 0.5, 0.8
COMPLEXITY_LOW, COMPLEXITY_HIGH = 0.3, 0.7


def vital_word(value: float) -> str:
    """Describe a vital in one word."""
    if value < VITAL_LOW:
        return "low"
    return "high" if value > VITAL_HIGH else "usual"


def complexity_word(value: float) -> str:
    """Describe complexity in one word."""
    if value < COMPLEXITY_LOW:
        return "low"
    return "high" if value > COMPLEXITY_HIGH else "medium"


def explain(limit: LoopLimit) -> Iterator[TextLine]:
    """Yield the full explanation, one line per part."""
    if limit.fallback is not None:
        yield line("limit.fallback", limit=limit.limit, reason=limit.fallback)
        return
    yield line(f"limit.task.{limit.profile or 'unknown'}", base=limit.base)
    if limit.learned_from:
        yield line("limit.learned", count=limit.learned_from, base=limit.base, table=limit.table_base)
    for name in VITALS:
        value = getattr(limit.vitals, name)
        yield line(f"limit.vital.{name}_{vital_word(value)}", value=f"{value:.2f}")
    yield line(f"limit.complexity.{complexity_word(limit.complexity)}", value=f"{limit.complexity:.2f}")
    for one in limit.adjustments:
        way = "more" if one.percent > 0 else "less"
        yield line(f"limit.adjustment.{one.source}_{way}", percent=abs(one.percent))
    if not limit.adjustments:
        yield line("limit.adjustment.none")
    yield line(
        "limit.arithmetic",
        base=limit.base,
        vitals=f"{limit.vitals_factor:.2f}",
        complexity=f"{limit.complexity_factor:.2f}",
        product=f"{limit.product:.2f}",
    )
    yield line("limit.result", limit=limit.limit, minimum=limit.minimum, maximum=limit.maximum)
    if limit.limit == limit.used:
        yield line("limit.used", used=limit.used)
