"""Find a model's traits before the first call: its context window, whether it is small, what it accepts."""

from collections.abc import Mapping

from duckflow.config.settings import LlmSettings
from duckflow.domain.model import ModelTraits, WindowSource
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.probes import ServedModel, list_served, list_tags, parameters_in

PROBE_TIMEOUT_S = 1.0
SMALL_PARAMETERS = 9e9
LARGE_WINDOW, SMALL_WINDOW = 128_000, 32_768
"""Windows assumed for a large and a small model if neither the server nor the name tells the size."""
OLLAMA_WINDOW = 8192
"""Ollama's default window; it silently truncates longer prompts unless configured otherwise."""

FAMILIES = (
    (("claude-2", "claude-instant"), 100_000, False),
    (("claude-3", "claude-haiku-4", "claude-opus-4-5", "claude-sonnet-4-5"), 200_000, True),
    (("claude-sonnet-4-0", "claude-opus-4-0", "claude-opus-4-1"), 200_000, True),
    (("claude-",), 1_000_000, True),
    (("gpt-3",), 16_385, False),
    (("gpt-4.1",), 1_000_000, True),
    (("gpt-4o", "gpt-4-turbo"), 128_000, True),
    (("gpt-4.",), 8192, True),
    (("gpt-4",), 8192, False),
    (("gpt-oss",), 131_072, False),
    (("gpt-5.4-",), 400_000, True),
    (("gpt-5.4", "gpt-5.5", "gpt-5.6"), 1_000_000, True),
    (("gpt-5",), 400_000, True),
    (("gpt-",), 1_000_000, True),
    (("o1-mini", "o1-preview"), 128_000, False),
    (("o1",), 128_000, True),
    (("o3-mini",), 200_000, False),
    (("o3", "o4"), 200_000, True),
    (("gemini-",), 1_000_000, True),
    (("codestral",), 256_000, False),
    (("magistral",), 40_000, False),
    (("mistral-medium", "mistral-small", "qwen3-vl"), 131_072, True),
    (("devstral", "ministral", "mistral-", "llama-3.", "qwen3", "kimi-k2"), 131_072, False),
    (("deepseek-",), 128_000, False),
    (("gemma-3", "gemma3", "pixtral", "llama-4", "llama4"), None, True),
    (("llama3.2-vision", "llava", "qwen2.5vl", "qwen2.5-vl"), None, True),
    (("",), None, False),
)
"""Rows of (name prefixes, window in tokens or None if unknown, accepts pictures).

The first row with a fitting prefix counts. Where models of a family differ, the row has the safe value.
"""


def known_of(name: str) -> tuple[int | None, bool]:
    """Return the window of the model called `name` (None if unknown) and whether it accepts pictures."""
    base = name.rpartition("/")[2].lower()
    return next((window, sees) for prefixes, window, sees in FAMILIES if base.startswith(prefixes))


async def find_traits(endpoint: Endpoint, settings: LlmSettings, env: Mapping[str, str]) -> ModelTraits:
    """Return a model's traits: from the settings, else from the user's server, else from its name.

    `WindowedClient` applies `llm.window` and learned windows later, for every kind of model.
    """
    (named, sees), parameters = known_of(endpoint.model), parameters_in(endpoint.model)
    told: int | None = None
    if endpoint.provider.name == "ollama":
        told, named = _number(env.get("OLLAMA_CONTEXT_LENGTH", "")), None
        if parameters is None and settings.small == "auto":
            parameters = await _size_in_ollama(endpoint)
    elif endpoint.own and endpoint.wire in ("openai", "responses"):
        served = await _served(endpoint)
        told, parameters = served.window, parameters or served.parameters
    small = parameters is not None and parameters <= SMALL_PARAMETERS
    small = small if settings.small == "auto" else settings.small
    if small and endpoint.own:
        named = None  # users who serve a small model usually give it a small window
    window, window_from = _window(endpoint, told, named, small=small)
    sees = sees if settings.sees == "auto" else settings.sees
    return ModelTraits(
        name=endpoint.name,
        window=window,
        window_from=window_from,
        small=small,
        native_tools=settings.native_tools is not False and not small,
        sees=sees and not small,
    )


def _window(
    endpoint: Endpoint, told: int | None, named: int | None, *, small: bool
) -> tuple[int, WindowSource]:
    if told:
        return told, "server"
    if named:
        return named, "name"
    if endpoint.provider.name == "ollama":
        return OLLAMA_WINDOW, "usual"
    return (SMALL_WINDOW, "usual") if small else (LARGE_WINDOW, "guess")


async def _served(endpoint: Endpoint) -> ServedModel:
    served = await list_served(endpoint, PROBE_TIMEOUT_S)
    named = [model for model in served if model.name == endpoint.model]
    return next(iter([*named, *served]), ServedModel())


async def _size_in_ollama(endpoint: Endpoint) -> float | None:
    names = (endpoint.model, f"{endpoint.model}:latest")
    tags = await list_tags(endpoint, PROBE_TIMEOUT_S)
    return next((tag.parameters for tag in tags if tag.name in names), None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
