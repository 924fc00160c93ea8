"""What is known of a model before it is asked: its window, and whether it is small."""

from collections.abc import Mapping

from duckflow.config.settings import LlmSettings
from duckflow.domain.model import ModelTraits
from duckflow.domain.patterns import late
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.probes import LlamaCppDetails, ServedModel, list_served, list_tags

PROBE_TIMEOUT_S = 1.0
SMALL_PARAMETERS = 9e9
DEFAULT_WINDOW = 32_768
OLLAMA_WINDOW = 8192
"""Ollama cuts longer prompts without a word, unless its user gave it a larger window."""

FAMILIES = (
    ("claude-2", 100_000, False),
    ("claude-instant", 100_000, False),
    ("claude-3", 200_000, True),
    ("claude-haiku-4", 200_000, True),
    ("claude-opus-4-5", 200_000, True),
    ("claude-sonnet-4-5", 200_000, True),
    ("claude-sonnet-4-0", 200_000, True),
    ("claude-opus-4-0", 200_000, True),
    ("claude-opus-4-1", 200_000, True),
    ("claude-", 1_000_000, True),
    ("gpt-3", 16_385, False),
    ("gpt-4.1", 1_000_000, True),
    ("gpt-4o", 128_000, True),
    ("gpt-4-turbo", 128_000, True),
    ("gpt-4.", 8192, True),
    ("gpt-4", 8192, False),
    ("gpt-oss", 131_072, False),
    ("gpt-5.4-", 400_000, True),
    ("gpt-5.4", 1_000_000, True),
    ("gpt-5.5", 1_000_000, True),
    ("gpt-5.6", 1_000_000, True),
    ("gpt-5", 400_000, True),
    ("gpt-", 1_000_000, True),
    ("o1-mini", 128_000, False),
    ("o1-preview", 128_000, False),
    ("o1", 128_000, True),
    ("o3-mini", 200_000, False),
    ("o3", 200_000, True),
    ("o4", 200_000, True),
    ("gemini-", 1_000_000, True),
    ("gemma-3", DEFAULT_WINDOW, True),
    ("gemma3", DEFAULT_WINDOW, True),
    ("codestral", 256_000, False),
    ("devstral", 131_072, False),
    ("magistral", 40_000, False),
    ("ministral", 131_072, False),
    ("mistral-medium", 131_072, True),
    ("mistral-small", 131_072, True),
    ("mistral-", 131_072, False),
    ("pixtral", DEFAULT_WINDOW, True),
    ("llama-3.", 131_072, False),
    ("llama3.2-vision", DEFAULT_WINDOW, True),
    ("llama-4", DEFAULT_WINDOW, True),
    ("llama4", DEFAULT_WINDOW, True),
    ("llava", DEFAULT_WINDOW, True),
    ("qwen2.5vl", DEFAULT_WINDOW, True),
    ("qwen2.5-vl", DEFAULT_WINDOW, True),
    ("qwen3-vl", 131_072, True),
    ("qwen3", 131_072, False),
    ("kimi-k2", 131_072, False),
    ("deepseek-", 128_000, False),
    ("", DEFAULT_WINDOW, False),
)
"""The window in tokens, and whether it sees pictures, by the beginning of a name; the first that fits counts.
On the safe side where a family differs."""

_SIZE = late(r"(?<![a-z0-9.])e?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_UNITS = {"b": 1e9, "m": 1e6}


def parameters_in(name: str) -> float | None:
    """The number of parameters a name gives away, such as 1.5b; the largest, if there are several."""
    sizes = [float(number) * _UNITS[unit] for number, unit in _SIZE.findall(name.lower())]
    return max(sizes, default=None)


def known_of(name: str) -> tuple[int, bool]:
    """The window of a provider's model, and whether it is known to see, by its name."""
    base = name.rpartition("/")[2].lower()
    return next((window, sees) for begins, window, sees in FAMILIES if base.startswith(begins))


async def find_traits(endpoint: Endpoint, settings: LlmSettings, env: Mapping[str, str]) -> ModelTraits:
    """Traits by setting, then by name, then by what the user's own server says of itself."""
    (window, sees), parameters = known_of(endpoint.model), parameters_in(endpoint.model)
    if endpoint.provider.name == "ollama":
        window = _number(env.get("OLLAMA_CONTEXT_LENGTH", "")) or OLLAMA_WINDOW
        if parameters is None and settings.small == "auto":
            parameters = await _size_in_ollama(endpoint)
    elif endpoint.own and endpoint.wire in ("openai", "responses"):
        served = await _served(endpoint)
        meta = served.meta or LlamaCppDetails()
        window = meta.n_ctx or served.max_model_len or DEFAULT_WINDOW
        parameters = parameters or meta.n_params
    small = parameters is not None and parameters <= SMALL_PARAMETERS
    small = small if settings.small == "auto" else settings.small
    sees = sees if settings.sees == "auto" else settings.sees
    return ModelTraits(
        name=endpoint.name,
        window=window,
        small=small,
        native_tools=settings.native_tools is not False and not small,
        sees=sees and not small,
    )


async def _served(endpoint: Endpoint) -> ServedModel:
    """What the server says of the model, or of the only one it has."""
    served = await list_served(endpoint, PROBE_TIMEOUT_S)
    named = [model for model in served if model.id == endpoint.model]
    return next(iter([*named, *served]), ServedModel())


async def _size_in_ollama(endpoint: Endpoint) -> float | None:
    names = (endpoint.model, f"{endpoint.model}:latest")
    tags = await list_tags(endpoint, PROBE_TIMEOUT_S)
    return next((parameters_in(tag.details.parameter_size) for tag in tags if tag.name in names), None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
