"""The goal of a request and its progress: requirements, evidence, verdict, attempts (J1 to J4)."""

from typing import Annotated, Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import Picture
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.plan import Risk

Priority = Literal[1, 2, 3]
"""Priority of a requirement: 1 is essential, 3 would be nice."""

Support = Literal["change", "reading", "nothing"]
"""Claim that evidence can prove: something was done, something was read, or nothing (it failed)."""

AsksFor = Literal["change", "information"]
"""A requirement asks for a change, or for information in the reply."""

Share = Annotated[float, Field(ge=0, le=1)]
Verification = Literal["passed", "failed", "none"]
Cap = Literal[
    "forgotten",
    "no_evidence",
    "unknown_evidence",
    "weak_evidence",
    "no_reply",
    "nothing_changed",
    "named_missing",
    "failing_verification",
    "unreadable",
    "no_requirements",
    "must_not_met",
    "not_recommended",
    "only_comments",
    "missed_file",
]
"""Reasons why the program lowered a score. `named_missing` occurs only in older sessions."""

REPLY = "reply"
"""Id by which an evaluator may cite the reply itself, if there is no other evidence."""


class Evidence(Frozen):
    """An observation with its id. It is not `current` if a newer one has replaced it."""

    evidence_id: str
    text: str
    kind: Literal["result", "check"] = "result"
    current: bool = True
    supports: Support = "change"


class ShownPicture(Frozen):
    """A picture for an evaluator: from the user, or from the result with this id."""

    picture: Picture
    evidence_id: str = ""


class RequirementItem(Frozen):
    """One requirement of the request, and its score in the last evaluation."""

    requirement: str
    priority: Priority = 1
    asks_for: AsksFor | None = None
    """None if unknown: then it depends on whether the request changed something."""
    satisfaction: Share = 0.0
    evidence: tuple[str, ...] = ()


class RequirementScore(Frozen):
    """Score of one requirement in a verdict. `claimed` is the evaluator's own score, None if it gave none."""

    requirement: str
    priority: Priority
    score: Share
    claimed: Share | None = None
    evidence: tuple[str, ...] = ()
    cap: Cap | None = None
    uncounted: tuple[str, ...] = ()
    """Ids that the evaluator cited, but that do not exist or prove nothing."""


class SatisfactionEvaluation(Frozen):
    """The verdict on a request. The program computes the overall score from the requirements' (J3)."""

    overall_score: Share
    done: bool
    requirement_scores: tuple[RequirementScore, ...] = ()
    missing_aspects: tuple[str, ...] = ()
    quality_assessment: str = ""
    completion_recommendation: bool = False
    caps: tuple[Cap, ...] = ()
    by: Literal["model", "program", "nobody"] = "model"
    """Author of the scores. The program always computes the overall score; `nobody` means no verdict."""


class EvaluationCase(Frozen):
    """Data for an evaluation: the request, the evidence, and the reply."""

    request: str
    requirements: tuple[RequirementItem, ...]
    evidence: tuple[Evidence, ...] = ()
    reply: str = ""
    information: bool = False
    """True if nothing was changed or run, so that the reply itself is judged."""
    changed: bool = True
    wants_change: bool = False
    """True if the model classified the request as work on files, which can't be done without a change."""
    looked_up: bool = True
    """True if actions of the request looked something up, so that its reply has sources."""
    verification: Verification = "none"
    """Combined result of the commands and checks that the request must pass."""
    checks: tuple[CheckResult, ...] = ()
    failing: tuple[str, ...] = ()
    """Targets of failed actions with no later success."""
    unwanted: tuple[str, ...] = ()
    """Actions that the user refused."""
    only_comments: bool = False
    """True if only comments and docstrings were changed, although other words asked for the change."""
    missed: tuple[str, ...] = ()
    """Files that the user named and that another file was changed or created instead of."""
    pictures: tuple[ShownPicture, ...] = ()


class ExecutionPlan(Frozen):
    """Plan of an attempt: strategy, steps, constraints, and approaches to avoid."""

    strategy: str
    steps: tuple[str, ...] = ()
    success_criteria: tuple[str, ...] = ()
    risk: Risk = "low"
    constraints: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    plain: bool = False
    """True if the program made the plan: its strategy repeats what is missing, in words for the model."""


class TriedList(Frozen):
    """Hash of a list of actions that was tried. `revision` counts the file changes up to its end."""

    digest: str
    changed: bool = False
    revision: int = 0


class AttemptResult(Frozen):
    """The work between two evaluations, and its results."""

    number: int
    strategy: str = ""
    plan: tuple[str, ...] = ()
    tried: tuple[TriedList, ...] = ()
    results: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Actions that the policy or a hook refused."""
    declined: tuple[str, ...] = ()
    """Actions that the user refused."""
    score: Share = 0.0
    done: bool = False
    forbidden: bool = False
    """True if the user wanted another way, so that its strategy may not be repeated."""
    lessons: tuple[str, ...] = ()


class ContinuationContext(Frozen):
    """Facts about earlier attempts that the next attempt needs (J4)."""

    score: Share
    needed: Share
    attempts: tuple[AttemptResult, ...] = ()
    errors: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """Checks that ran before the last verdict, with their results."""
    partial_successes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    improvements: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()
    """Actions that the rules refused."""
    failed_approaches: tuple[str, ...] = ()
    """Strategies that the user does not want any more. Others may have failed only by their execution."""
    limitations: tuple[str, ...] = ()


class TaskObjective(Frozen):
    """The user's request as requirements that can be checked, and what was learned while working on it."""

    request: str
    requirements: tuple[RequirementItem, ...] = ()
    added: str = ""
    """Words of the user that the requirements do not contain yet."""
    stopped: bool = False
    """True if the user stopped the work before the first of these words."""
    failures_accepted: bool = False
    """True if the user said that tests may fail for now."""
    said_at: int = 0
    """Revision at the user's last message."""
    iterations: int = 0
    """Number of evaluations since the user's last message."""
    attempts: tuple[AttemptResult, ...] = ()
    """Evaluated attempts, oldest first."""
    current: AttemptResult = AttemptResult(number=1)
    """Attempt in progress."""
    revision: int = 0
    """Number of times files were changed, or may have been because the user was at work."""
    changed_at: int = 0
    """Revision at which an action last changed files."""
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
        return tuple(dict.fromkeys(line for one in (*self.attempts, self.current) for line in one.results))

    @property
    def missing(self) -> tuple[str, ...]:
        """Aspects that the last evaluation found missing, for the user: failed checks are only named."""
        names = {one.aspect: f"✗ {one.name}" for one in self.checks}
        found = self.evaluation.missing_aspects if self.evaluation else ()
        return tuple(names.get(one, one) for one in found)
