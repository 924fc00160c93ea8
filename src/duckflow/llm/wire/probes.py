"""Ask a server for its models. A server that is down or too slow counts as having none."""

import asyncio
from typing import TypeVar

from duckflow.domain.errors import ProviderError
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.lenient import LenientModel

MAX_LIST_BYTES = 4 * 1024 * 1024

List = TypeVar("List", bound=LenientModel)


class LlamaCppDetails(LenientModel):
    """Extra fields of a llama.cpp server."""

    n_params: float | None = None
    n_ctx: int | None = None


class ServedModel(LenientModel):
    """Model in a server's list."""

    id: str = ""
    meta: LlamaCppDetails | None = None
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    max_context_length: int | None = None

    @property
    def window(self) -> int | None:
        """Return the window in tokens, from the field that llama.cpp, vLLM or another server uses."""
        own = self.meta.n_ctx if self.meta else None
        return (
            own or self.max_model_len or self.context_length or self.context_window or self.max_context_length
        )


class ServedModels(LenientModel):
    """List of a server's models."""

    data: tuple[ServedModel, ...] = ()


class OllamaDetails(LenientModel):
    """Ollama's details about a model."""

    parameter_size: str = ""


class OllamaModel(LenientModel):
    """Model in Ollama's list."""

    name: str = ""
    details: OllamaDetails = OllamaDetails()


class OllamaModels(LenientModel):
    """List of Ollama's models, newest first."""

    models: tuple[OllamaModel, ...] = ()


async def list_served(endpoint: Endpoint, seconds: float) -> tuple[ServedModel, ...]:
    """Return the models that an OpenAI-compatible server lists."""
    return (await _ask(endpoint, f"{endpoint.address}/models", ServedModels, seconds)).data


async def list_tags(endpoint: Endpoint, seconds: float) -> tuple[OllamaModel, ...]:
    """Return the models that an Ollama server has."""
    address = endpoint.address.removesuffix("/v1")
    return (await _ask(endpoint, f"{address}/api/tags", OllamaModels, seconds)).models


async def _ask(endpoint: Endpoint, address: str, answer: type[List], seconds: float) -> List:
    """Return the answer, or an empty one on an error, which the first model call will report anyway."""
    from duckflow.llm.wire.http import get_json  # noqa: PLC0415 - loads the HTTP library only if needed

    try:
        async with asyncio.timeout(seconds):
            return answer.from_json(await get_json(endpoint, address, MAX_LIST_BYTES))
    except (ProviderError, ValueError, TimeoutError):
        return answer()
