"""All that is judged at once, put together from what the loop observed (SPEC J2)."""

from collections.abc import Sequence

from duckflow.domain.frozen import Frozen
from duckflow.domain.objective import EvaluationCase, Evidence, TaskObjective
from duckflow.evaluation.facts import Fact, verification_of
from duckflow.evaluation.naming import unseen_names
from duckflow.services.requirements import plain_requirements


class Observed(Frozen):
    """What the loop knows when its model says done."""

    reply: str = ""
    """What the user was told last."""
    changed: bool = False
    ran: bool = False
    """Whether a file was changed, and whether a command was run, for this request."""
    failing: tuple[str, ...] = ()
    """What an action failed on and none has succeeded on since."""
    command_passed: bool | None = None
    """How the last verifying command ended; None where there was none."""


def build_case(
    objective: TaskObjective, evidence: Sequence[Evidence], facts: Sequence[Fact], observed: Observed
) -> EvaluationCase:
    """The case for an evaluator. `evidence` holds the facts, too, as its last checks."""
    return EvaluationCase(
        request=objective.request,
        requirements=objective.requirements or plain_requirements(objective.request),
        evidence=tuple(evidence),
        reply=observed.reply,
        information=not (observed.changed or observed.ran),
        verification=verification_of(facts, observed.command_passed),
        failing=observed.failing,
        unseen=unseen_names(objective.request, facts) if facts else (),
    )
