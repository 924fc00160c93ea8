"""Questions to a server that may not be there: which models it has. No answer in time counts as none."""

import asyncio
from typing import TypeVar

from duckflow.domain.errors import ProviderError
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.lenient import LenientModel

MAX_LIST_BYTES = 4 * 1024 * 1024

List = TypeVar("List", bound=LenientModel)


class LlamaCppDetails(LenientModel):
    """What a llama.cpp server adds."""

    n_params: float | None = None
    n_ctx: int | None = None


class ServedModel(LenientModel):
    """One model of a server's list."""

    id: str = ""
    meta: LlamaCppDetails | None = None
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    max_context_length: int | None = None

    @property
    def window(self) -> int | None:
        """The window in tokens, under the name that llama.cpp, vLLM or another server gives it."""
        own = self.meta.n_ctx if self.meta else None
        return (
            own or self.max_model_len or self.context_length or self.context_window or self.max_context_length
        )


class ServedModels(LenientModel):
    """A server's list of models."""

    data: tuple[ServedModel, ...] = ()


class OllamaDetails(LenientModel):
    """What Ollama knows of a model."""

    parameter_size: str = ""


class OllamaModel(LenientModel):
    """A model Ollama has."""

    name: str = ""
    details: OllamaDetails = OllamaDetails()


class OllamaModels(LenientModel):
    """The models Ollama has, newest first."""

    models: tuple[OllamaModel, ...] = ()


async def list_served(endpoint: Endpoint, seconds: float) -> tuple[ServedModel, ...]:
    """The models an OpenAI-compatible server lists."""
    return (await _ask(endpoint, f"{endpoint.address}/models", ServedModels, seconds)).data


async def list_tags(endpoint: Endpoint, seconds: float) -> tuple[OllamaModel, ...]:
    """The models an Ollama has."""
    address = endpoint.address.removesuffix("/v1")
    return (await _ask(endpoint, f"{address}/api/tags", OllamaModels, seconds)).models


async def _ask(endpoint: Endpoint, address: str, answer: type[List], seconds: float) -> List:
    """The answer, or an empty one: whatever is wrong there will be said when the model itself is asked."""
    from duckflow.llm.wire.http import get_json  # noqa: PLC0415 - the HTTP library is not loaded before it is needed

    try:
        async with asyncio.timeout(seconds):
            return answer.from_json(await get_json(endpoint, address, MAX_LIST_BYTES))
    except (ProviderError, ValueError, TimeoutError):
        return answer()
