"""Ask a server for its models. A server that is down or too slow counts as having none."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from duckflow.domain.errors import ProviderError
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.json_fields import JsonFields

MAX_LIST_BYTES = 4 * 1024 * 1024

_SIZE = lazy_regex(r"(?<![a-z0-9.])e?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_UNITS = {"b": 1e9, "m": 1e6}

_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Fields in which servers name a model's window; llama.cpp names it in `meta.n_ctx`."""


class ServedModel(NamedTuple):
    """Model in a server's list, with its window and number of parameters if the server names them."""

    name: str = ""
    window: int | None = None
    parameters: float | None = None


async def list_served(endpoint: Endpoint, seconds: float) -> list[ServedModel]:
    """Return the models that an OpenAI-compatible server lists."""
    return await _ask(endpoint, f"{endpoint.address}/models", seconds, "data", _served)


async def list_tags(endpoint: Endpoint, seconds: float) -> list[ServedModel]:
    """Return the models that an Ollama server has, newest first."""
    return await _ask(endpoint, f"{endpoint.address.removesuffix('/v1')}/api/tags", seconds, "models", _tag)


def _served(model: JsonFields) -> ServedModel:
    meta = model.inner("meta")
    windows = (meta.count("n_ctx"), *(model.count(field) for field in _WINDOWS))
    window = next((window for window in windows if window), None)
    return ServedModel(model.text("id"), window, meta.count("n_params") or None)


def _tag(model: JsonFields) -> ServedModel:
    size = model.inner("details").text("parameter_size")
    return ServedModel(model.text("name"), parameters=parameters_in(size))


async def _ask(
    endpoint: Endpoint, address: str, seconds: float, field: str, read: Callable[[JsonFields], ServedModel]
) -> list[ServedModel]:
    """Return the models, or none on an error, which the first model call will report anyway."""
    from duckflow.llm.wire.http import get_json  # noqa: PLC0415 - loads the HTTP library only if needed

    try:
        async with asyncio.timeout(seconds):
            answer = JsonFields.parse(await get_json(endpoint, address, MAX_LIST_BYTES))
            return [read(model) for model in answer.objects(field)]
    except (ProviderError, ValueError, TimeoutError):
        return []


def parameters_in(name: str) -> float | None:
    """Return the largest number of parameters in a name, such as 1.5e9 for `1.5b`, or None."""
    sizes = [float(number) * _UNITS[unit] for number, unit in _SIZE.findall(name.lower())]
    return max(sizes, default=None)
