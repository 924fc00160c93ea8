"""Who serves models, where and with which key: a table, and how a name and the environment pick from it."""

import difflib
import ipaddress
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from duckflow.domain.errors import ProviderError, UsageError
from duckflow.domain.frozen import Frozen

THINKING_ALLOWANCE = 23_808
"""Tokens on top of an answer's, so that thinking, which counts as output, leaves the answer its room. With
the longest answer that makes 32,000, the most that some models give."""

Wire = Literal["openai", "responses", "anthropic", "pydantic_ai"]


class Provider(Frozen):
    """One row of the table. The first of `key_variables` is the one to tell the user about."""

    name: str
    wire: Wire
    key_variables: tuple[str, ...]
    address: str = ""
    address_variable: str | None = None
    default_model: str = ""
    """What is used if nobody chose a model, but this provider's key is there (K3)."""
    needs_key: bool = True
    """Some do without one, or find their own elsewhere."""


def _http(wire: Wire, name: str, address: str, default_model: str) -> Provider:
    """A provider that we ask ourselves, with the variables that its own library would read."""
    return Provider(
        name=name,
        wire=wire,
        key_variables=(f"{name.upper()}_API_KEY",),
        address=address,
        address_variable=f"{name.upper()}_BASE_URL",
        default_model=default_model,
    )


def _other(name: str, *key_variables: str, default_model: str = "", needs_key: bool = True) -> Provider:
    """A provider whose own library is asked, through pydantic-ai."""
    return Provider(
        name=name,
        wire="pydantic_ai",
        key_variables=key_variables,
        default_model=default_model,
        needs_key=needs_key,
    )


PROVIDERS = {
    row.name: row
    for row in (
        _http("anthropic", "anthropic", "https://api.anthropic.com", "claude-sonnet-5-5"),
        _http("openai", "openai", "https://api.openai.com/v1", "gpt-6.1-terra"),
        _other("google", "GOOGLE_API_KEY", "GEMINI_API_KEY", default_model="gemini-3.8-flash"),
        _http("openai", "groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
        _http("openai", "openrouter", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-5.5"),
        _http("openai", "mistral", "https://api.mistral.ai/v1", "mistral-large-latest"),
        Provider(
            name="ollama",
            wire="openai",
            key_variables=("OLLAMA_API_KEY",),
            address="http://127.0.0.1:11434/v1",
            address_variable="OLLAMA_HOST",
            needs_key=False,
        ),
        Provider(
            name="responses",
            wire="responses",
            key_variables=("OPENAI_API_KEY",),
            address="https://api.openai.com/v1",
            address_variable="OPENAI_BASE_URL",
        ),
        _other("azure", "AZURE_OPENAI_API_KEY"),
        _other("bedrock", "AWS_ACCESS_KEY_ID", needs_key=False),
        _other("cohere", "CO_API_KEY"),
        _other("huggingface", "HF_TOKEN"),
    )
}
"""In the order in which a key in the environment is looked for."""

KNOWN_NAMES = (*PROVIDERS, "embedded", "scripted", "relay")
"""All that a model's name may begin with; the last ones are nobody's service."""


class Endpoint(Frozen):
    """One model at one address."""

    provider: Provider
    model: str
    address: str = ""
    key: str = Field(default="", repr=False)

    @property
    def name(self) -> str:
        """As the user writes it."""
        return f"{self.provider.name}:{self.model}"

    @property
    def own(self) -> bool:
        """Whether this is the user's own server or proxy, not the provider's address."""
        return self.address != self.provider.address

    @property
    def wire(self) -> Wire:
        """OpenAI itself is asked through Responses; servers like it know at least chat completions."""
        return "responses" if self.provider.name == "openai" and not self.own else self.provider.wire

    @property
    def shown_address(self) -> str:
        """The address without a password someone may have put into it; if there is none, the provider."""
        if not self.address:
            return self.provider.name
        parts = urlsplit(self.address)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def find_provider(name: str) -> Provider:
    """The table's row for `name`; a name nobody has is answered with the nearest known one."""
    if name in PROVIDERS:
        return PROVIDERS[name]
    nearest = difflib.get_close_matches(name.lower(), KNOWN_NAMES, n=1, cutoff=0.5)
    if nearest:
        raise UsageError("llm.unknown_provider_nearest", name=name, nearest=nearest[0])
    raise UsageError("llm.unknown_provider", name=name, known=", ".join(KNOWN_NAMES))


def find_endpoint(name: str, env: Mapping[str, str]) -> Endpoint:
    """Where `provider:model` is served, with its key; a key is needed only at the provider's own address.

    Over plain http a key goes only to this machine (SAFETY 20).
    """
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
    """A provider as the environment has it, with or without a model."""
    address, key = find_address(provider, env), find_key(provider, env)
    return Endpoint(provider=provider, model=model, address=address, key=key)


def find_key(provider: Provider, env: Mapping[str, str]) -> str:
    """The provider's key in the environment, or nothing."""
    for variable in provider.key_variables:
        key = env.get(variable, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ProviderError("llm.key_malformed", variable=variable)
        if key:
            return key
    return ""


def find_address(provider: Provider, env: Mapping[str, str]) -> str:
    """The provider's address, or the one the environment sets instead. Never one a project's file sets."""
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
    """Whether an address stays on this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _ollama_address(host: str) -> str:
    """OLLAMA_HOST as Ollama reads it: scheme and port may be left out, and 0.0.0.0 is where it listens."""
    if "://" not in host:
        host = f"http://{host}"
    scheme, _, rest = host.partition("://")
    authority = rest.partition("/")[0].replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - a name to replace, not to bind
    if not authority.rpartition("]")[2].rpartition(":")[1]:
        authority += ":443" if scheme == "https" else ":11434"
    return f"{scheme}://{authority}/v1"


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        _ = parts.port  # reading it is what checks it
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
