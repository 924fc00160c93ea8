"""Open a model by its name: `provider:model`, `embedded[:FILE]`, `scripted:FILE`, `relay` (K2, N)."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from duckflow.config.settings import EmbeddedSettings, LlmSettings
from duckflow.domain.errors import ProviderError, UsageError
from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelClient, ModelTraits
from duckflow.llm.endpoints import PROVIDERS, Endpoint, find_endpoint, full_name
from duckflow.llm.local.relay import Relay, RelayModel
from duckflow.llm.retry import RetryingClient
from duckflow.llm.traits import find_traits
from duckflow.llm.windows import LearnedWindows, WindowedClient

SCRIPT_WINDOW = 131_072

OpenModel = Callable[[str, Mapping[str, str]], Awaitable[ModelClient]]
"""Function of a plugin that opens a model, given the name after the colon and the environment."""


async def open_client(
    name: str,
    settings: LlmSettings,
    env: Mapping[str, str],
    relay: Relay | None = None,
    asked: Mapping[str, int] = MappingProxyType({}),
    others: Mapping[str, OpenModel] = MappingProxyType({}),
    learned: LearnedWindows | None = None,
) -> ModelClient:
    """Return a client for model `name` that retries while its provider is busy.

    `asked` counts the calls of earlier processes in the same run, by type of output; a script continues
    after them. `others` are the providers of plugins.
    """
    name = full_name(name, settings.embedded.full_name)
    kind, _, rest = name.partition(":")
    own = others.get(kind)
    client = await (own(rest, env) if own else _open(name, settings, env, relay, asked))
    patient = RetryingClient(client, settings)
    if kind == "embedded":
        return patient  # already has its window, and refuses a prompt that is too long before reading it
    return WindowedClient(patient, settings.window, _place(name, env, own=own is not None), learned)


def _place(name: str, env: Mapping[str, str], *, own: bool) -> str:
    """Return the model with its address, since another server may serve it with another window."""
    if own or name.partition(":")[0] not in PROVIDERS:
        return name
    endpoint = find_endpoint(name, env)
    return f"{endpoint.name} {endpoint.shown_address}"


async def _open(
    name: str, settings: LlmSettings, env: Mapping[str, str], relay: Relay | None, asked: Mapping[str, int]
) -> ModelClient:
    kind, _, rest = name.partition(":")
    if kind == "embedded":
        from duckflow.llm.local.embedded import open_embedded  # noqa: PLC0415 - only when named
        from duckflow.llm.weights.catalogue import known  # noqa: PLC0415 - as above

        options = _embedded(settings)
        if rest in {one.name for one in known()}:
            return await open_embedded(None, replace(options, model=rest, path=None))
        return await open_embedded(_path(rest), options)
    if kind == "scripted":
        from duckflow.llm.local.scripted import open_scripted  # noqa: PLC0415 - only when named

        if not rest:
            raise UsageError("llm.model_missing", name=name, example="scripted:FILE.jsonl")
        return await open_scripted(_path(rest), _set_traits(name, settings), asked)
    if kind == "relay":
        return RelayModel(relay, _set_traits(name, settings))
    endpoint = find_endpoint(name, env)
    return await _open_wire(endpoint, await find_traits(endpoint, settings, env))


async def _open_wire(endpoint: Endpoint, traits: ModelTraits) -> ModelClient:
    if endpoint.wire == "pydantic_ai":
        # The import takes seconds; in a thread, it does not block the user's typing.
        return await asyncio.to_thread(_open_other, endpoint, traits)
    from duckflow.llm.wire.client import WireModel  # noqa: PLC0415 - only when named

    if endpoint.wire == "openai":
        from duckflow.llm.wire.openai import OPENAI as WIRE  # noqa: PLC0415 - as above
    elif endpoint.wire == "responses":
        from duckflow.llm.wire.responses import RESPONSES as WIRE  # noqa: PLC0415 - as above
    else:
        from duckflow.llm.wire.anthropic import ANTHROPIC as WIRE  # noqa: PLC0415 - as above
    return WireModel(WIRE, endpoint, traits)


def _open_other(endpoint: Endpoint, traits: ModelTraits) -> ModelClient:
    try:
        from duckflow.llm.wire.pydantic_ai import open_pydantic_ai  # noqa: PLC0415 - only when named

        return open_pydantic_ai(endpoint, traits)
    except ImportError as exc:
        raise ProviderError("llm.extra_missing", provider=endpoint.provider.name, extra="providers") from exc


def _embedded(settings: LlmSettings) -> EmbeddedSettings:
    """Return the embedded model's settings, in which `llm.embedded.window` overrides `llm.window`."""
    own = settings.embedded
    wanted = None if "window" in own.model_fields_set else settings.window
    return replace(own, window=wanted) if wanted else own


def _path(text: str) -> Path:
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser can raise


def _set_traits(name: str, settings: LlmSettings) -> ModelTraits:
    """Return the traits of a script or a relay, which only the settings can tell."""
    small = settings.small is True
    return ModelTraits(
        name=name,
        window=SCRIPT_WINDOW,
        small=small,
        native_tools=settings.native_tools is True and not small,
        sees=settings.sees is True and not small,
    )
