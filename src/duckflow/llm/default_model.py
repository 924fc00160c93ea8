"""Choose a model if the user set none: by a key in the environment, else Ollama, else embedded (K3).

The same places tell which models can be suggested.
"""

from collections.abc import Mapping, Sequence

from pydantic import Field

from duckflow.domain.errors import UserError
from duckflow.domain.frozen import Frozen
from duckflow.llm.endpoints import PROVIDERS, Provider, endpoint_of, find_endpoint
from duckflow.llm.probes import list_served, list_tags

OLLAMA_TIMEOUT_S = 0.3
SERVER_TIMEOUT_S = 1.0
_MOST_LISTED = 100


class ModelChoice(Frozen):
    """A model and the reason for choosing it, as a key of the message catalogue and its values."""

    name: str
    reason_key: str
    values: Mapping[str, str] = Field(default_factory=dict[str, str])


async def choose_model(env: Mapping[str, str]) -> ModelChoice:
    """Return the first available model: one with a key, then Ollama's, then the embedded one."""
    for provider in PROVIDERS.values():
        chosen = await _by_environment(provider, env)
        if chosen is not None:
            return chosen
    return await _by_ollama(env) or ModelChoice(name="embedded", reason_key="llm.chosen_embedded")


async def list_models(env: Mapping[str, str]) -> Sequence[str]:
    """Return models to suggest: those of the user's own servers, and one for each key in the environment."""
    found: list[str] = []
    for provider in PROVIDERS.values():
        try:
            endpoint = find_endpoint(f"{provider.name}:{provider.default_model or 'any'}", env)
        except UserError:
            continue  # no key, or one that can't be used
        if endpoint.own and provider.wire == "openai":
            ask = list_tags if provider.name == "ollama" else list_served
            served = await ask(endpoint, SERVER_TIMEOUT_S)
            names = [one.name for one in served if one.name and "embed" not in one.name]
            found += [f"{provider.name}:{name}" for name in names[:_MOST_LISTED]]
        elif endpoint.key and provider.default_model and not endpoint.own:
            found.append(f"{provider.name}:{provider.default_model}")
    return found


async def _by_environment(provider: Provider, env: Mapping[str, str]) -> ModelChoice | None:
    if not provider.default_model:
        return None
    endpoint = endpoint_of(provider, env)
    if endpoint.own:
        # Only servers with the openai wire format can list their models.
        served = await list_served(endpoint, SERVER_TIMEOUT_S) if provider.wire == "openai" else []
        model = next((one.name for one in served if one.name), provider.default_model)
        values = {"variable": provider.address_variable or "", "address": endpoint.shown_address}
        return ModelChoice(name=f"{provider.name}:{model}", reason_key="llm.chosen_by_address", values=values)
    if not endpoint.key:
        return None
    variable = next(name for name in provider.key_variables if env.get(name, "").strip())
    name = f"{provider.name}:{provider.default_model}"
    return ModelChoice(name=name, reason_key="llm.chosen_by_key", values={"variable": variable})


async def _by_ollama(env: Mapping[str, str]) -> ModelChoice | None:
    endpoint = endpoint_of(PROVIDERS["ollama"], env)
    tags = await list_tags(endpoint, OLLAMA_TIMEOUT_S)
    chat = [tag.name for tag in tags if tag.name and "embed" not in tag.name]
    if not chat:
        return None
    address = endpoint.shown_address.removesuffix("/v1")
    return ModelChoice(name=f"ollama:{chat[0]}", reason_key="llm.chosen_ollama", values={"address": address})
