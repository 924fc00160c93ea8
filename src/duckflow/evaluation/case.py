"""All that is judged at once, put together from what the loop observed (SPEC J2)."""

from collections.abc import Iterable

from duckflow.domain.decision import TaskProfile
from duckflow.domain.state import Request
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import EvaluationCase, Evidence
from duckflow.evaluation.facts import Fact, verification_of
from duckflow.services.evaluation import plain_requirements


def build_case(
    request: Request,
    reply: str,
    evidence: Iterable[Evidence],
    facts: Iterable[Fact],
    results: Iterable[CheckResult] = (),
    *,
    ran: bool = False,
    passed: bool | None = None,
) -> EvaluationCase:
    """The case for an evaluator. `evidence` holds the facts, and then the results, as its last checks.

    `ran`: whether a command was run for it; `passed`: how the verifying command ended, None if there is none.
    """
    objective, results = request.objective, tuple(results)
    refused = [line for one in (*objective.attempts, objective.current) for line in one.refused]
    return EvaluationCase(
        request=objective.request,
        requirements=objective.requirements or plain_requirements(objective.request),
        evidence=tuple(evidence),
        reply=reply,
        information=not (request.changed or ran),
        changed=bool(request.changed),
        wants_change=request.profile == "file_operation",
        looked_up=bool(objective.results),
        verification=verification_of(facts, passed, results),
        checks=results,
        failing=request.failing,
        unwanted=tuple(line for line in refused if _NO in line),
    )


_NO = "The user said no"
"""In what is told of a refusal by the user, not by the policy."""

TALK: tuple[TaskProfile, ...] = ("general_chat", "simple_question")
"""Profiles of requests that are over once they are answered."""


def needs_evaluation(profile: TaskProfile | None, *, changed_anything: bool, ran_anything: bool) -> bool:
    """Whether a request that its model calls done must be judged first: all but talk that did nothing.

    A profile that nobody named is no talk.
    """
    return changed_anything or ran_anything or profile not in TALK
