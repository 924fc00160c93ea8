"""Assembles the input of an evaluation from what the loop observed (J2)."""

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
    """Build the case for an evaluator. `evidence` ends with the facts, followed by the results.

    `ran`: true if a command was run; `passed`: result of the verifying command, None if there is none.
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
"""Marks refusals by the user, as opposed to those by the policy."""

TALK: tuple[TaskProfile, ...] = ("general_chat", "simple_question")
"""Profiles of requests that end once they are answered."""


def needs_evaluation(profile: TaskProfile | None, *, changed_anything: bool, ran_anything: bool) -> bool:
    """Return whether a request must be judged before it is done: all but talk without actions."""
    return changed_anything or ran_anything or profile not in TALK
