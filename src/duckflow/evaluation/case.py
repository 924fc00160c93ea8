"""All that is judged at once, put together from what the loop observed (SPEC J2)."""

from collections.abc import Sequence

from duckflow.domain.decision import TaskProfile
from duckflow.domain.frozen import Frozen
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import EvaluationCase, Evidence, TaskObjective
from duckflow.evaluation.facts import Fact, verification_of
from duckflow.services.requirements import plain_requirements


class ObservedWork(Frozen):
    """What the loop knows when its model says done."""

    reply: str = ""
    """What the user was told last."""
    changed: bool = False
    ran: bool = False
    """Whether a file was changed, and whether a command was run, for this request."""
    profile: TaskProfile | None = None
    """What the model took it for."""
    failing: tuple[str, ...] = ()
    """What an action failed on and none has succeeded on since."""
    command_passed: bool | None = None
    """How the verifying command ended; None if there is none."""


def build_case(
    objective: TaskObjective,
    evidence: Sequence[Evidence],
    facts: Sequence[Fact],
    observed: ObservedWork,
    results: Sequence[CheckResult] = (),
) -> EvaluationCase:
    """The case for an evaluator. `evidence` holds the facts, and then the results, as its last checks."""
    return EvaluationCase(
        request=objective.request,
        requirements=objective.requirements or plain_requirements(objective.request),
        evidence=tuple(evidence),
        reply=observed.reply,
        information=not (observed.changed or observed.ran),
        changed=observed.changed,
        wants_change=observed.profile == "file_operation",
        looked_up=bool(objective.results),
        verification=verification_of(facts, observed.command_passed, results),
        checks=tuple(results),
        failing=observed.failing,
    )


TALK: tuple[TaskProfile, ...] = ("general_chat", "simple_question")
"""Profiles of requests that are over once they are answered."""


def needs_evaluation(profile: TaskProfile | None, *, changed_anything: bool, ran_anything: bool) -> bool:
    """Whether a request that its model calls done must be judged first: all but talk that did nothing.

    A profile that nobody named is no talk.
    """
    return changed_anything or ran_anything or profile not in TALK
