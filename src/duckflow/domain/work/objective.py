"""The goal of a request and its progress: requirements, evidence, verdict, attempts (J1 to J4)."""

from typing import Annotated, Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.plan import Risk

Priority = Literal[1, 2, 3]
"""Priority of a requirement: 1 is essential, 3 would be nice."""

Support = Literal["change", "reading", "nothing"]
"""Claim that evidence supports: something was done, something was read, or nothing (it failed)."""

AsksFor = Literal["change", "information"]
"""A requirement asks for a change, or for information in the reply."""

Share = Annotated[float, Field(ge=0, le=1)]
Verification = Literal["passed", "failed", "none"]
Cap = Literal[
    "forgotten",
    "no_evidence",
    "no_reply",
    "named_missing",
    "failing_verification",
    "unreadable",
    "no_requirements",
    "must_not_met",
    "not_recommended",
]
"""Reasons why the program lowered a score. `named_missing` occurs only in older sessions."""

REPLY = "reply"
"""Id by which an evaluator may cite the reply, if there is nothing else to cite."""


class Evidence(Frozen):
    """An observation with its id. It is no longer `current` if something newer replaced it."""

    evidence_id: str
    text: str
    kind: Literal["result", "check"] = "result"
    current: bool = True
    supports: Support = "change"


class RequirementItem(Frozen):
    """One requirement of the request, and its score in the last evaluation."""

    requirement: str
    priority: Priority = 1
    asks_for: AsksFor | None = None
    """None if not stated: then it depends on what was done."""
    satisfaction: Share = 0.0
    evidence: tuple[str, ...] = ()


class RequirementScore(Frozen):
    """Score of one requirement in a verdict. `claimed` is the evaluator's score, None if it gave none."""

    requirement: str
    priority: Priority
    score: Share
    claimed: Share | None = None
    evidence: tuple[str, ...] = ()
    cap: Cap | None = None


class SatisfactionEvaluation(Frozen):
    """The verdict on a request; the program computes the overall score from the parts (J3)."""

    overall_score: Share
    done: bool
    requirement_scores: tuple[RequirementScore, ...] = ()
    missing_aspects: tuple[str, ...] = ()
    quality_assessment: str = ""
    completion_recommendation: bool = False
    caps: tuple[Cap, ...] = ()
    by: Literal["model", "program", "nobody"] = "model"
    """Judge; the program always does the arithmetic. `nobody` means that it was not judged."""


class EvaluationCase(Frozen):
    """Input of an evaluation: the request, the evidence, and the reply."""

    request: str
    requirements: tuple[RequirementItem, ...]
    evidence: tuple[Evidence, ...] = ()
    reply: str = ""
    information: bool = False
    """True if nothing was changed or run, so that the reply itself is judged."""
    changed: bool = True
    wants_change: bool = False
    """True if the model classified the request as work on files, so that doing nothing can't be enough."""
    looked_up: bool = True
    """True if the request looked something up, so that its reply has sources."""
    verification: Verification = "none"
    """Combined result of the commands and checks that the request must pass."""
    checks: tuple[CheckResult, ...] = ()
    failing: tuple[str, ...] = ()
    """Targets on which an action failed and none has succeeded since."""
    unwanted: tuple[str, ...] = ()
    """Actions the user refused."""


class ExecutionPlan(Frozen):
    """Plan of an attempt: strategy, steps, constraints, and approaches to avoid."""

    strategy: str
    steps: tuple[str, ...] = ()
    success_criteria: tuple[str, ...] = ()
    risk: Risk = "low"
    constraints: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()


class TriedList(Frozen):
    """Digest of a list of actions that was tried. `revision` is the file revision at its end."""

    digest: str
    changed: bool = False
    revision: int = 0


class AttemptResult(Frozen):
    """The work between two evaluations and its results."""

    number: int
    strategy: str = ""
    plan: tuple[str, ...] = ()
    tried: tuple[TriedList, ...] = ()
    results: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Actions that the user or the policy refused."""
    score: Share = 0.0
    done: bool = False
    lessons: tuple[str, ...] = ()


class ContinuationContext(Frozen):
    """Facts about earlier attempts that the next attempt needs (J4)."""

    score: Share
    needed: Share
    attempts: tuple[AttemptResult, ...] = ()
    errors: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """Checks run before the last verdict, with results."""
    partial_successes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    improvements: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()
    failed_approaches: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()


class TaskObjective(Frozen):
    """The user's request as checkable requirements, and everything learned while working on it."""

    request: str
    requirements: tuple[RequirementItem, ...] = ()
    iterations: int = 0
    """Evaluations since the user's last message."""
    attempts: tuple[AttemptResult, ...] = ()
    """Evaluated attempts, oldest first."""
    current: AttemptResult = AttemptResult(number=1)
    """Attempt in progress."""
    revision: int = 0
    """Number of times files were changed."""
    learned_constraints: tuple[str, ...] = ()
    evaluation: SatisfactionEvaluation | None = None
    checks: tuple[CheckResult, ...] = ()
    """Checks run for the last verdict."""

    @property
    def satisfaction(self) -> float:
        """Overall score of the last evaluation."""
        return self.evaluation.overall_score if self.evaluation else 0.0

    @property
    def failed_attempts(self) -> tuple[AttemptResult, ...]:
        """Attempts that were not satisfactory."""
        return tuple(attempt for attempt in self.attempts if not attempt.done)

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies that were tried, oldest first, without duplicates."""
        return tuple(dict.fromkeys(one.strategy for one in self.attempts if one.strategy))

    @property
    def results(self) -> tuple[str, ...]:
        """Results so far, oldest first, one line each."""
        collected = (line for one in (*self.attempts, self.current) for line in one.results)
        return tuple(dict.fromkeys(collected))
