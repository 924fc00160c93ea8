"""Why something failed and what to do about it, for the evaluator tier (SPEC K1)."""

from collections.abc import Sequence

from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelRequest, Usage
from duckflow.domain.objective import Evidence
from duckflow.domain.ports import ModelClient
from duckflow.domain.text import cut
from duckflow.llm.answers.structured import ask
from duckflow.prompts.evaluation import failure_request, opinion_request
from duckflow.services.schemas import schema_of

MOST_FIXES = 4

_CAUSE, _FIX = 1_000, 300


class FailureAnalysis(Frozen):
    """The cause of a failure, and what to do about it, most promising first."""

    cause: str
    fixes: tuple[str, ...] = ()


async def analyze_execution_failure(
    client: ModelClient, request: str, failures: Sequence[str], evidence: Sequence[Evidence]
) -> tuple[FailureAnalysis, Usage]:
    """Why these things failed, and what it took to find out. Raises ProviderError."""
    return await ask_analysis(client, failure_request(client.traits, request, failures, evidence))


async def ask_analysis(client: ModelClient, request: ModelRequest) -> tuple[FailureAnalysis, Usage]:
    """The analysis a prompt asks for, kept short."""
    asked = replace(request, answer_schema=schema_of(FailureAnalysis))
    answer = await ask(client, asked, FailureAnalysis, lambda _: None, _problem)
    fixes = [cut(" ".join(fix.split()), _FIX) for fix in answer.value.fixes if fix.strip()]
    found = FailureAnalysis(
        cause=cut(" ".join(answer.value.cause.split()), _CAUSE), fixes=tuple(fixes[:MOST_FIXES])
    )
    return found, answer.usage


def _problem(analysis: FailureAnalysis) -> str | None:
    return None if analysis.cause.strip() else "`cause` is empty"


async def give_second_opinion(
    client: ModelClient, request: str, troubles: Sequence[str], evidence: Sequence[Evidence]
) -> tuple[FailureAnalysis, Usage]:
    """What is in the way as this model sees it, what it would do, and what it took. Raises ProviderError."""
    return await ask_analysis(client, opinion_request(client.traits, request, troubles, evidence))
