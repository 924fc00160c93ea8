"""How a model that did not do the work sees it, for the evaluator tier."""

from collections.abc import Sequence

from duckflow.domain.model import Usage
from duckflow.domain.objective import Evidence
from duckflow.domain.ports import ModelClient
from duckflow.prompts.evaluation import opinion_request
from duckflow.services.failure_analysis import FailureAnalysis, ask_analysis


async def give_second_opinion(
    client: ModelClient, request: str, troubles: Sequence[str], evidence: Sequence[Evidence]
) -> tuple[FailureAnalysis, Usage]:
    """What is in the way as this model sees it, what it would do, and what it took. Raises ProviderError."""
    return await ask_analysis(client, opinion_request(client.traits, request, troubles, evidence))
