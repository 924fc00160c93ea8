"""Texts that describe earlier attempts and the current plan to the model (J4)."""

from collections.abc import Iterable

from duckflow.domain.text import cut
from duckflow.domain.work.objective import (
    AttemptResult,
    ContinuationContext,
    ExecutionPlan,
    SatisfactionEvaluation,
)

TOLD, SMALL_TOLD = 4_000, 700
"""Character limits of a continuation, for large models and for small ones."""


def continuation_text(context: ContinuationContext, limit: int = TOLD) -> str:
    """Describe the state of a request to the planner of the next attempt, most important facts first."""
    parts = [
        *_state(context),
        *_section("To fix it", context.improvements),
        *_section("The user does not want this any more", context.failed_approaches),
        *_section("Constraints", context.limitations),
        *_section("Refused by the rules", context.unavailable),
        *_section("Other ways", context.alternatives),
        *_section("Errors so far", context.errors),
        *_section("Attempts so far", map(_attempt, context.attempts)),
    ]
    return cut("\n".join(parts), limit)


def difference_text(context: ContinuationContext) -> str:
    """Describe to the working model, which knows the earlier attempts, what the verdict adds."""
    return cut("\n".join(_state(context)), TOLD)


def _state(context: ContinuationContext) -> list[str]:
    begun = context.attempts[-1].number + 1 if context.attempts else 1
    before = "".join(f" (before: {one.score:.2f})" for one in context.attempts[-2:-1])
    return [
        f"The request is not met yet: {context.score:.2f}{before} of the {context.needed:.2f} that are "
        f"needed. Attempt {begun} begins.",
        *_section("Still wrong or missing", context.problems),
        *_section("Checked by running (✓ passed, ✗ failed, – not run)", context.checks),
        *_section("Already met, keep it", context.partial_successes),
    ]


def retry_text(evaluation: SatisfactionEvaluation) -> str:
    """Describe a failed attempt to a small model, which has the request and the file in its conversation."""
    known = {
        "nothing_changed": "no file was changed",
        "only_comments": "only comments were changed, the code does the same as before",
        "missed_file": "the file that the user named was not changed",
    }
    reasons = [known[cap] for cap in evaluation.caps if cap in known]
    failed = _section("The program checked it, and this failed:", (*reasons, *evaluation.missing_aspects))
    return cut("\n".join([*failed, "Write the file again so that it is right."]), SMALL_TOLD)


def plan_text(plan: ExecutionPlan) -> str:
    """Describe the plan of an attempt to the model that carries it out."""
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
