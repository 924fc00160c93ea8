"""What a request is for and how far it is met: requirements, evidence, verdict, attempts (SPEC J1 to J4)."""

from typing import Annotated, Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.plan import Risk

Priority = Literal[1, 2, 3]
"""1 is what the request stands or falls with, 3 what would be nice."""

Support = Literal["change", "reading", "nothing"]
"""What evidence can show: that something was done; only what there is; or, if it failed, nothing."""

AsksFor = Literal["change", "information"]
"""What a requirement asks for: that something is done, or that the reply says something."""

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
"""Why the program counts less than the evaluator said. `named_missing` is only found in older sessions."""

REPLY = "reply"
"""The id by which an evaluator may cite the reply, if there is nothing else to cite."""


class EvaluationRules(Frozen):
    """The numbers a verdict is computed with."""

    max_iterations: Annotated[int, Field(ge=1, le=100)] = 3
    """The most evaluations of a request between two answers of yours."""

    done_at: Annotated[float, Field(ge=0.1, le=1)] = 0.8
    """A request whose requirements are met to this share, or more, is done."""

    verify: Annotated[str, Field(max_length=2_000)] = ""
    """A command that must succeed before any request counts as done; it is run without asking."""

    unproven_at_most: Share = 0.5
    """What a score counts at most that cites no evidence."""

    weights: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        default=(3, 2, 1), min_length=3, max_length=3
    )
    """How much requirements of priority 1, 2 and 3 count."""


class Evidence(Frozen):
    """Something that was seen, by its id. What is not `current` was replaced by something newer."""

    evidence_id: str
    text: str
    kind: Literal["result", "check"] = "result"
    current: bool = True
    supports: Support = "change"


class RequirementItem(Frozen):
    """One thing the request wants, and how far that was met when it was last looked at."""

    requirement: str
    priority: Priority = 1
    asks_for: AsksFor | None = None
    """None if nobody said: then what was done tells."""
    satisfaction: Share = 0.0
    evidence: tuple[str, ...] = ()


class RequirementScore(Frozen):
    """What one requirement counts in a verdict. `claimed` is what the evaluator said, None for nothing."""

    requirement: str
    priority: Priority
    score: Share
    claimed: Share | None = None
    evidence: tuple[str, ...] = ()
    cap: Cap | None = None


class SatisfactionEvaluation(Frozen):
    """The verdict on a request: the whole as the program computed it from the parts (SPEC J3)."""

    overall_score: Share
    done: bool
    requirement_scores: tuple[RequirementScore, ...] = ()
    missing_aspects: tuple[str, ...] = ()
    quality_assessment: str = ""
    completion_recommendation: bool = False
    caps: tuple[Cap, ...] = ()
    by: Literal["model", "program", "nobody"] = "model"
    """Who looked at the evidence; the arithmetic is always the program's. `nobody`: it was not judged."""


class EvaluationCase(Frozen):
    """All that is judged at once: what was wanted, what was seen, what the user was told."""

    request: str
    requirements: tuple[RequirementItem, ...]
    evidence: tuple[Evidence, ...] = ()
    reply: str = ""
    information: bool = False
    """Nothing was changed and nothing was run: the reply itself is judged."""
    changed: bool = True
    """Whether any file is different now."""
    wants_change: bool = False
    """Whether the model took it for work on files: that of a small one is settled once, and counts."""
    looked_up: bool = True
    """Whether the request looked anything up, so that its reply has sources."""
    verification: Verification = "none"
    """What the commands and checks said that the request must pass."""
    checks: tuple[CheckResult, ...] = ()
    """What was run to see whether it is right."""
    failing: tuple[str, ...] = ()
    """What an action failed on and none has succeeded on since."""
    unwanted: tuple[str, ...] = ()
    """What the user said no to."""


class ExecutionPlan(Frozen):
    """How an attempt goes about it: strategy, steps, what holds for them, and what not to do again."""

    strategy: str
    steps: tuple[str, ...] = ()
    success_criteria: tuple[str, ...] = ()
    risk: Risk = "low"
    constraints: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()


class TriedList(Frozen):
    """A list of actions that was tried, as a digest. `revision`: how often files had changed by its end."""

    digest: str
    changed: bool = False
    revision: int = 0


class AttemptResult(Frozen):
    """The work between two evaluations and what came of it."""

    number: int
    strategy: str = ""
    plan: tuple[str, ...] = ()
    tried: tuple[TriedList, ...] = ()
    results: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """What the user or the policy did not permit."""
    score: Share = 0.0
    done: bool = False
    lessons: tuple[str, ...] = ()


class ContinuationContext(Frozen):
    """What the next attempt must know of those before it (SPEC J4)."""

    score: Share
    needed: Share
    attempts: tuple[AttemptResult, ...] = ()
    errors: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """What was run before the last verdict, and what came of it."""
    partial_successes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    improvements: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()
    failed_approaches: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()


class TaskObjective(Frozen):
    """What the user asked, in parts that can be checked, and all that was learned on the way to it."""

    request: str
    requirements: tuple[RequirementItem, ...] = ()
    iterations: int = 0
    """Evaluations since the user last said something."""
    attempts: tuple[AttemptResult, ...] = ()
    """Those that were evaluated, oldest first."""
    current: AttemptResult = AttemptResult(number=1)
    """The one that is under way."""
    revision: int = 0
    """How often files were changed."""
    learned_constraints: tuple[str, ...] = ()
    evaluation: SatisfactionEvaluation | None = None
    """The last verdict."""
    checks: tuple[CheckResult, ...] = ()
    """What was run for it."""

    @property
    def satisfaction(self) -> float:
        """How far the request was met at the last look."""
        return self.evaluation.overall_score if self.evaluation else 0.0

    @property
    def failed_attempts(self) -> tuple[AttemptResult, ...]:
        """The attempts that did not satisfy."""
        return tuple(attempt for attempt in self.attempts if not attempt.done)

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies that were tried, oldest first, each once."""
        return tuple(dict.fromkeys(one.strategy for one in self.attempts if one.strategy))

    @property
    def results(self) -> tuple[str, ...]:
        """What was collected, oldest first, a line each."""
        collected = (line for one in (*self.attempts, self.current) for line in one.results)
        return tuple(dict.fromkeys(collected))
