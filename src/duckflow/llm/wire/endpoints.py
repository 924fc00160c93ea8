"""Who serves models, where and with which key: a table, and how a name and the environment pick from it."""

import difflib
import ipaddress
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from duckflow.domain.errors import ProviderError, UsageError
from duckflow.domain.frozen import Frozen

THINKING_ALLOWANCE = 8192
"""Tokens on top of an answer's: the large providers count a model's thinking as output."""

Wire = Literal["openai", "anthropic", "pydantic_ai"]


class Provider(Frozen):
    """One row of the table. The first of `key_variables` is the one to tell the user about."""

    name: str
    wire: Wire
    address: str = ""
    key_variables: tuple[str, ...]
    needs_key: bool = True
    """Some do without one, or find their own elsewhere."""
    address_variable: str | None = None
    default_model: str = ""
    """What is used if nobody chose a model, but this provider's key is there (SPEC K3)."""


PROVIDERS = {
    row.name: row
    for row in (
        Provider(
            name="anthropic",
            wire="anthropic",
            address="https://api.anthropic.com",
            key_variables=("ANTHROPIC_API_KEY",),
            address_variable="ANTHROPIC_BASE_URL",
            default_model="claude-sonnet-5-5",
        ),
        Provider(
            name="openai",
            wire="openai",
            address="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            address_variable="OPENAI_BASE_URL",
            default_model="gpt-6.1-terra",
        ),
        Provider(
            name="google",
            wire="pydantic_ai",
            key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            default_model="gemini-3.8-flash",
        ),
        Provider(
            name="groq",
            wire="openai",
            address="https://api.groq.com/openai/v1",
            key_variables=("GROQ_API_KEY",),
            address_variable="GROQ_BASE_URL",
            default_model="openai/gpt-oss-120b",
        ),
        Provider(
            name="openrouter",
            wire="openai",
            address="https://openrouter.ai/api/v1",
            key_variables=("OPENROUTER_API_KEY",),
            address_variable="OPENROUTER_BASE_URL",
            default_model="anthropic/claude-sonnet-5.5",
        ),
        Provider(
            name="mistral",
            wire="openai",
            address="https://api.mistral.ai/v1",
            key_variables=("MISTRAL_API_KEY",),
            address_variable="MISTRAL_BASE_URL",
            default_model="mistral-large-latest",
        ),
        Provider(
            name="ollama",
            wire="openai",
            address="http://127.0.0.1:11434/v1",
            key_variables=("OLLAMA_API_KEY",),
            needs_key=False,
            address_variable="OLLAMA_HOST",
        ),
        Provider(name="azure", wire="pydantic_ai", key_variables=("AZURE_OPENAI_API_KEY",)),
        Provider(name="bedrock", wire="pydantic_ai", key_variables=("AWS_ACCESS_KEY_ID",), needs_key=False),
        Provider(name="cohere", wire="pydantic_ai", key_variables=("CO_API_KEY",)),
        Provider(name="huggingface", wire="pydantic_ai", key_variables=("HF_TOKEN",)),
    )
}
"""In the order in which a key in the environment is looked for."""

OTHER_NAMES = ("embedded", "scripted", "relay")
"""Models that are nobody's service."""


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
    known = [*PROVIDERS, *OTHER_NAMES]
    nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    if nearest:
        raise UsageError("llm.unknown_provider_nearest", name=name, nearest=nearest[0])
    raise UsageError("llm.unknown_provider", name=name, known=", ".join(known))


def find_endpoint(name: str, env: Mapping[str, str]) -> Endpoint:
    """Where `provider:model` is served, with its key; a key is needed only at the provider's own address.

    Over plain http a key goes only to this machine (SAFETY 20).
    """
    provider_name, _, model = name.partition(":")
    provider = find_provider(provider_name)
    if not model:
        example = f"{provider.name}:{provider.default_model or 'MODEL'}"
        raise UsageError("llm.model_missing", name=name, example=example)
    endpoint = Endpoint(
        provider=provider, model=model, address=find_address(provider, env), key=find_key(provider, env)
    )
    if provider.needs_key and not endpoint.key and not endpoint.own:
        raise ProviderError("llm.key_missing", provider=provider.name, variable=provider.key_variables[0])
    if endpoint.key and urlsplit(endpoint.address).scheme == "http" and not is_loopback(endpoint.address):
        raise UsageError("llm.key_in_the_clear", provider=provider.name, address=endpoint.shown_address)
    return endpoint


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
