"""Table of providers, and the choice of address and key by a model's name and the environment."""

import difflib
import ipaddress
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from duckflow.domain.errors import ProviderError, UsageError
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex

THINKING_ALLOWANCE = 23_808
"""Tokens added to an answer's limit for thinking. Some models allow 32,000 for both together."""

Wire = Literal["openai", "responses", "anthropic", "pydantic_ai"]


class Provider(NamedTuple):
    """Service with models. Messages to the user name the first of `key_variables`."""

    name: str
    wire: Wire
    key_variables: tuple[str, ...]
    address: str = ""
    address_variable: str | None = None
    default_model: str = ""
    """Model to use if the user chose none, but this provider's key is set (K3)."""
    needs_key: bool = True
    """False for providers that need no key, or whose library finds it elsewhere."""


def _http(wire: Wire, name: str, address: str, default_model: str) -> Provider:
    """Return a provider with our own HTTP client and the variables that its official library reads."""
    prefix = name.upper()
    return Provider(name, wire, (f"{prefix}_API_KEY",), address, f"{prefix}_BASE_URL", default_model)


PROVIDERS = {
    row.name: row
    for row in (
        _http("anthropic", "anthropic", "https://api.anthropic.com", "claude-sonnet-5-5"),
        _http("openai", "openai", "https://api.openai.com/v1", "gpt-6.1-terra"),
        Provider(
            "google", "pydantic_ai", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), default_model="gemini-3.8-flash"
        ),
        _http("openai", "groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
        _http("openai", "openrouter", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-5.5"),
        _http("openai", "mistral", "https://api.mistral.ai/v1", "mistral-large-latest"),
        Provider(
            "ollama",
            "openai",
            ("OLLAMA_API_KEY",),
            "http://127.0.0.1:11434/v1",
            "OLLAMA_HOST",
            needs_key=False,
        ),
        Provider(
            "responses", "responses", ("OPENAI_API_KEY",), "https://api.openai.com/v1", "OPENAI_BASE_URL"
        ),
        Provider("azure", "pydantic_ai", ("AZURE_OPENAI_API_KEY",)),
        Provider("bedrock", "pydantic_ai", ("AWS_ACCESS_KEY_ID",), needs_key=False),
        Provider("cohere", "pydantic_ai", ("CO_API_KEY",)),
        Provider("huggingface", "pydantic_ai", ("HF_TOKEN",)),
    )
}
"""Providers by name, in the order in which the environment is searched for a key."""

KNOWN_NAMES = (*PROVIDERS, "embedded", "scripted", "relay")
"""Every prefix of a model's name; the last three are not services on a network."""


_FAMILIES = {
    "anthropic": ("claude",),
    "openai": ("gpt-", "chatgpt", "o1", "o3", "o4", "codex"),
    "google": ("gemini", "gemma-3n"),
    "mistral": ("mistral", "codestral", "devstral", "magistral", "ministral", "pixtral"),
    "cohere": ("command-",),
}
"""First letters of the names of a provider's models."""
_OLLAMA_TAG = lazy_regex(r"[\w./-]+:(?:\d+(?:\.\d+)?b(?:-[\w.-]+)?|latest)", re.IGNORECASE)


class Endpoint(Frozen):
    """Model at one address."""

    provider: Provider
    model: str
    address: str = ""
    key: str = Field(default="", repr=False)

    @property
    def name(self) -> str:
        """Return the full name, as the user writes it."""
        return f"{self.provider.name}:{self.model}"

    @property
    def own(self) -> bool:
        """Return True if this is the user's own server or proxy, not the provider's address."""
        return self.address != self.provider.address

    @property
    def wire(self) -> Wire:
        """Return the provider's wire format; for OpenAI itself, always that of its Responses API."""
        return "responses" if self.provider.name == "openai" and not self.own else self.provider.wire

    @property
    def shown_address(self) -> str:
        """Return the address without credentials; the provider's name if there is no address."""
        if not self.address:
            return self.provider.name
        parts = urlsplit(self.address)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def find_provider(name: str) -> Provider:
    """Return the provider called `name`. For an unknown one, the error suggests the nearest name."""
    if name in PROVIDERS:
        return PROVIDERS[name]
    nearest = difflib.get_close_matches(name.lower(), KNOWN_NAMES, n=1, cutoff=0.5)
    if nearest:
        raise UsageError("llm.unknown_provider_nearest", name=name, nearest=nearest[0])
    raise UsageError("llm.unknown_provider", name=name, known=", ".join(KNOWN_NAMES))


def full_name(name: str, embedded: str) -> str:
    """Add the provider to a model's name if the name alone tells it, as `gpt-6` does.

    `embedded` is the full name of the configured embedded model.
    """
    if name.partition(":")[0] in KNOWN_NAMES:
        return embedded if name == "embedded" else name
    if _OLLAMA_TAG.fullmatch(name):
        return f"ollama:{name}"
    found = [provider for provider, begins in _FAMILIES.items() if name.lower().startswith(begins)]
    return f"{found[0]}:{name}" if found and ":" not in name else name


def find_endpoint(name: str, env: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of `provider:model` with its key. Refuse to send a key unencrypted (SAFETY 20)."""
    provider_name, _, model = name.partition(":")
    provider = find_provider(provider_name)
    if not model:
        example = f"{provider.name}:{provider.default_model or 'MODEL'}"
        raise UsageError("llm.model_missing", name=name, example=example)
    endpoint = endpoint_of(provider, env, model)
    if provider.needs_key and not endpoint.key and not endpoint.own:
        raise ProviderError("llm.key_missing", provider=provider.name, variable=provider.key_variables[0])
    if endpoint.key and urlsplit(endpoint.address).scheme == "http" and not is_loopback(endpoint.address):
        raise UsageError("llm.key_in_the_clear", provider=provider.name, address=endpoint.shown_address)
    return endpoint


def endpoint_of(provider: Provider, env: Mapping[str, str], model: str = "") -> Endpoint:
    """Return the provider's endpoint as the environment configures it, with or without a model."""
    address, key = find_address(provider, env), find_key(provider, env)
    return Endpoint(provider=provider, model=model, address=address, key=key)


def find_key(provider: Provider, env: Mapping[str, str]) -> str:
    """Return the provider's key from the environment, or an empty string."""
    for variable in provider.key_variables:
        key = env.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ProviderError("llm.key_malformed", variable=variable)
        if key:
            return key
    return ""


def find_address(provider: Provider, env: Mapping[str, str]) -> str:
    """Return the address set in the environment, else the provider's default. Project files can't set it."""
    variable = provider.address_variable
    given = env.get(variable, "").strip() if variable else ""
    if not given:
        return provider.address
    address = _ollama_address(given) if provider.name == "ollama" else given.rstrip("/")
    if provider.wire == "anthropic":
        address = address.removesuffix("/v1")
    if not _is_web_address(address):
        raise UsageError("llm.bad_address", variable=variable, address=given)
    return address


def is_loopback(address: str) -> bool:
    """Return True if an address is on this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _ollama_address(host: str) -> str:
    """Convert OLLAMA_HOST to an address: add a missing scheme and port, and replace 0.0.0.0 by loopback."""
    if "://" not in host:
        host = f"http://{host}"
    scheme, _, rest = host.partition("://")
    authority = rest.partition("/")[0].replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - replaced, not bound
    if not authority.rpartition("]")[2].rpartition(":")[1]:
        authority += ":443" if scheme == "https" else ":11434"
    return f"{scheme}://{authority}/v1"


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        _ = parts.port  # reading the port validates it
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
