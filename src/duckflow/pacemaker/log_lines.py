"""Log lines of the pacemaker, in English with numbers (I8). Users read `domain/pacing/reasons.py` instead."""

from collections import Counter
from collections.abc import Sequence

from duckflow.domain.pacing.limits import LoopLimit
from duckflow.domain.pacing.reasons import complexity_word, vital_word
from duckflow.domain.pacing.vitals import VITALS, Vitals
from duckflow.domain.questions.consultation import ConsultationKind
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.pacemaker.rules import Consult, Extend, Move


def log_start(limit: LoopLimit) -> tuple[str, ...]:
    """Return lines about the limit of a request and how it was computed."""
    profile = limit.profile or "unknown"
    if limit.fallback is not None:
        return (f"limit {limit.limit} for {profile}, as configured: {limit.fallback}",)
    adjusted = ", ".join(f"{one.source} {one.percent:+d} %" for one in limit.adjustments)
    vitals = ((name, getattr(limit.vitals, name)) for name in VITALS)
    return (
        f"limit {limit.limit} for {profile} (base {limit.base})",
        "vitals " + " ".join(f"{name}={value:.2f} ({vital_word(value)})" for name, value in vitals),
        f"complexity {limit.complexity:.2f} ({complexity_word(limit.complexity)})",
        f"adjustments: {adjusted or 'none'}",
        f"{limit.base} × {limit.vitals_factor:.2f} × {limit.complexity_factor:.2f} = {limit.product:.2f}, "
        f"between {limit.minimum} and {limit.maximum}: {limit.limit}",
    )


def log_loop(loop: int, signs: Sequence[str], before: Vitals, after: Vitals) -> tuple[str, ...]:
    """Return lines about the signs found in a loop, and about how the vitals changed."""
    lines = [", ".join(signs)] if signs else []
    for name in VITALS:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            lines.append(f"{name} {'rose' if new > old else 'fell'} ({old:.2f} to {new:.2f})")
    return tuple(f"loop {loop}: {line}" for line in lines)


def log_move(loop: int, move: Move) -> str:
    """Return a line about a move, which is not Go."""
    match move:
        case Extend(limit=limit):
            return f"loop {loop}: limit extended to {limit}"
        case Consult(kind=kind, cause=cause):
            what = "halt" if cause == "stamina" else "consult the user"
            return f"loop {loop}: {what}: {kind} ({cause})"
        case _:
            return f"loop {loop}: new plan ({move.cause})"


def log_end(
    used: int, limit: int, asked: Sequence[ConsultationKind], outcome: RequestOutcome
) -> tuple[str, ...]:
    """Return lines about the loops used, the questions asked, and the outcome."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(asked).items())
    return (
        f"used {used}/{limit} loops",
        f"interventions: {len(asked)} ({kinds})" if asked else "interventions: 0",
        f"outcome: {outcome}",
    )
