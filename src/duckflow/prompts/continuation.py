"""What a new attempt is told of those before it, and of the plan it follows (J4)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.text import cut
from duckflow.domain.work.objective import (
    AttemptResult,
    ContinuationContext,
    ExecutionPlan,
    SatisfactionEvaluation,
)

TOLD, SMALL_TOLD = 4_000, 700
"""Characters a continuation takes at most, and for a small model."""


def continuation_text(context: ContinuationContext, limit: int = TOLD) -> str:
    """What is known after attempts that did not satisfy; what matters most comes first."""
    begun = context.attempts[-1].number + 1 if context.attempts else 1
    parts = [
        f"The request is not met yet: {context.score:.2f} of the {context.needed:.2f} that are needed. "
        f"Attempt {begun} begins.",
        *_section("Still wrong or missing", context.problems),
        *_section("Checked by running (✓ passed, ✗ failed, – not run)", context.checks),
        *_section("What would mend it", context.improvements),
        *_section("Met already, keep it", context.partial_successes),
        *_section("Failed before, do not do it again", context.failed_approaches),
        *_section("Holds, keep to it", context.limitations),
        *_section("Not available", context.unavailable),
        *_section("Other ways", context.alternatives),
        *_section("Errors so far", context.errors),
        *_section("Attempts so far", map(_attempt, context.attempts)),
    ]
    return _fitting(parts, limit)


def retry_text(evaluation: SatisfactionEvaluation) -> str:
    """What a small model is told of a failed attempt; its request and its file are in the conversation."""
    failed = _section("The program checked it, and this failed:", evaluation.missing_aspects)
    return _fitting([*failed, "Write the file again so that it is right."], SMALL_TOLD)


def plan_text(plan: ExecutionPlan) -> str:
    """The plan of an attempt, for whoever carries it out."""
    steps = [f"{place}. {step}" for place, step in enumerate(plan.steps, start=1)]
    parts = [
        f"Strategy: {plan.strategy}",
        *(["\n".join(["Steps", *steps])] if steps else []),
        *_section("Done when", plan.success_criteria),
        *_section("Keep to", plan.constraints),
        *_section("Avoid", plan.avoid),
    ]
    return "\n".join(parts)


def _attempt(attempt: AttemptResult) -> str:
    strategy = attempt.strategy or "without a stated strategy"
    plan = f"; planned: {'; '.join(attempt.plan)}" if attempt.plan else ""
    results = f"; brought: {'; '.join(attempt.results[-3:])}" if attempt.results else ""
    lessons = f"; learned: {'; '.join(attempt.lessons)}" if attempt.lessons else ""
    return cut(f"{attempt.number}. {strategy} ({attempt.score:.2f}){plan}{results}{lessons}", 400)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    listed = [f"- {line}" for line in lines]
    return ["\n".join([title, *listed])] if listed else []


def _fitting(parts: Sequence[str], limit: int) -> str:
    """As many parts as fit, whole; the one that does not is cut, and those after it are left out."""
    text = ""
    for part in parts:
        joined = f"{text}\n{part}" if text else part
        if len(joined) > limit:
            return cut(joined, limit)
        text = joined
    return text
