"""A session that stands at a question: some work is done, something failed, and the user is consulted."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from duckflow.domain.decision import Action, Decision
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    DecisionMade,
    Evaluated,
    Event,
    PlanChanged,
    RequestFinished,
    RequirementsFound,
    Transition,
    UserMessage,
)
from duckflow.domain.model import ChatMessage
from duckflow.domain.questions.consultation import ConsultationKind
from duckflow.domain.reduce.objective import digest_of
from duckflow.domain.transitions import Step
from duckflow.domain.work.objective import RequirementItem, RequirementScore, SatisfactionEvaluation
from duckflow.domain.work.plan import Plan, PlanStep
from duckflow.loops.judging.consultation import consult
from fakes.engine import Watched, decision, engine
from fakes.model_server import Answer, Fault, ModelServer, Reply

REQUEST = "Make a.py print hello"
TRIED = (Action(operation="file_ops.read_file", args={"path": "gone.txt"}),)
PLAN = Plan(
    plan_id="plan_1",
    name="Old plan",
    goal="x",
    steps=(PlanStep(step_id="step_1", name="One", description="d"),),
)
ANALYSIS = {"cause": "gone.txt was never made.", "fixes": ["Make gone.txt", "Do without it"]}
DRAFT = {
    "name": "In parts",
    "goal": REQUEST,
    "risk": "low",
    "success_criteria": ["it prints hello"],
    "steps": [
        {"name": "Write", "description": "write a.py", "depends_on": []},
        {"name": "Run", "description": "run a.py", "depends_on": [1]},
        {"name": "Check", "description": "check what it prints", "depends_on": [2]},
    ],
}


def worked() -> tuple[Event, ...]:
    """What happened before the question: an action that failed, a plan, a verdict that was not enough."""
    decided = Decision(
        next_step="continue",
        actions=TRIED,
        step=Step.EXECUTION,
        state_delta={"goal": "print hello", "plan_brief": ["read gone.txt"]},
    )
    verdict = SatisfactionEvaluation(
        overall_score=0.4,
        done=False,
        requirement_scores=(RequirementScore(requirement="it prints hello", priority=1, score=0.4),),
        missing_aspects=("nothing is printed",),
        quality_assessment="Half of it is there.",
    )
    return (
        UserMessage(request_id="r_1", text=REQUEST),
        DecisionMade(loop=3, decision=decided, exchange=(ChatMessage(role="assistant", text="{}"),)),
        Transition(start=Step.PLANNING, end=Step.EXECUTION, by="model", reason="x"),
        PlanChanged(plan=PLAN, change="proposed"),
        ActionStarted(action_id="a1", action=TRIED[0]),
        ActionFinished(
            action_id="a1",
            operation=TRIED[0].operation,
            outcome="failed",
            text="gone.txt does not exist",
            path="gone.txt",
            evidence_id="e1",
        ),
        RequirementsFound(requirements=(RequirementItem(requirement="it prints hello"),)),
        Evaluated(iteration=1, evaluation=verdict),
        DecisionMade(loop=4, decision=decided, exchange=(ChatMessage(role="assistant", text="{}"),)),
    )


def answer(body: dict[str, Any]) -> Reply:
    """What the model says: by what it is asked for."""
    asked = re.findall(r"Output: (\w+)", body["messages"][-1]["content"]) or ["Decision"]
    said: dict[str, Any] = {"FailureAnalysis": ANALYSIS, "PlanDraft": DRAFT}
    if asked[-1] in said:
        return Answer(json.dumps(said[asked[-1]]))
    return Answer(decision("What else?", next_step="pending_user"))


def no_advice(body: dict[str, Any]) -> Reply:
    """A model that can decide and can't do anything else."""
    asked = re.findall(r"Output: (\w+)", body["messages"][-1]["content"]) or ["Decision"]
    return answer(body) if asked[-1] == "Decision" else Fault(400, "no")


@asynccontextmanager
async def consulted(
    folder: Path, kind: ConsultationKind, replies: Any = answer, **options: Any
) -> AsyncIterator[tuple[Watched, ModelServer]]:
    """`async with consulted(folder, "confusion") as (duck, server): await duck.app.chat.choose(…)`."""
    with ModelServer(replies) as server:
        async with engine(folder, server=server, **options) as duck:
            duck.app.session.record(*worked())
            duck.app.session.record(consult(duck.state, kind))
            outcome = "not_satisfied" if kind == "escalation" else "consultation"
            duck.app.session.record(RequestFinished(request_id="r_1", outcome=outcome, exit_code=3))
            yield duck, server


TRIED_DIGEST = digest_of(TRIED)
