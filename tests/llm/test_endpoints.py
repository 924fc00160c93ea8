"""Choice of provider, address and key (K2, N)."""

import pytest

from duckflow.domain.errors import ProviderError, UsageError, UserError
from duckflow.i18n.catalogue import text
from duckflow.llm.endpoints import PROVIDERS, Endpoint, find_endpoint, full_name, is_loopback
from fakes.rows import every_row

KEYED = [row for row in PROVIDERS.values() if row.needs_key]


def refusal(name: str, env: dict[str, str]) -> UserError:
    with pytest.raises(UserError) as caught:
        find_endpoint(name, env)
    text(caught.value.key, **caught.value.values)
    return caught.value


def test_K2_every_provider_of_the_promise_is_there():
    assert {"openai", "anthropic", "google", "groq", "openrouter", "mistral", "ollama"} <= set(PROVIDERS)


@every_row("row", PROVIDERS.values(), ids=lambda row: row.name)
def test_K2_a_row_of_the_table_is_complete(row):
    assert row.key_variables
    assert (row.wire == "pydantic_ai") != bool(row.address)
    assert bool(row.address) == bool(row.address_variable)


@every_row("row", KEYED, ids=lambda row: row.name)
def test_K2_the_key_comes_from_the_environment(row):
    for variable in row.key_variables:
        endpoint = find_endpoint(f"{row.name}:some/model:7b", {variable: " sk-1 "})
        assert (endpoint.key, endpoint.model, endpoint.address) == ("sk-1", "some/model:7b", row.address)
        assert not endpoint.own


@every_row("row", KEYED, ids=lambda row: row.name)
def test_K2_a_missing_key_is_named(row):
    for env in ({}, {row.key_variables[0]: "  "}):
        failure = refusal(f"{row.name}:m", env)
        assert isinstance(failure, ProviderError)
        assert failure.values["variable"] == row.key_variables[0]


@every_row("key", ["sk-\nx", "сk", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_an_error(key):
    assert refusal("openai:m", {"OPENAI_API_KEY": key}).key == "llm.key_malformed"


@every_row("row", [row for row in KEYED if row.address_variable], ids=lambda row: row.name)
def test_N_the_environment_can_set_the_address_and_then_no_key_is_needed(row):
    endpoint = find_endpoint(f"{row.name}:m", {str(row.address_variable): "http://127.0.0.1:8080/x/"})
    assert (endpoint.address, endpoint.key, endpoint.own) == ("http://127.0.0.1:8080/x", "", True)


def test_K2_OpenAI_itself_and_servers_named_so_are_asked_through_Responses():
    own = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    key = {"OPENAI_API_KEY": "sk-1"}
    found = {
        (name, "own" if env is own else "theirs"): find_endpoint(f"{name}:m", env).wire
        for name in ("openai", "responses")
        for env in (own, key)
    }
    assert found == {
        ("openai", "own"): "openai",
        ("openai", "theirs"): "responses",
        ("responses", "own"): "responses",
        ("responses", "theirs"): "responses",
    }
    assert find_endpoint("responses:m", key | own).key == "sk-1"


def test_the_anthropic_address_may_be_given_with_or_without_its_version():
    for given in ("http://localhost:1", "http://localhost:1/v1", "http://localhost:1/v1/"):
        assert find_endpoint("anthropic:m", {"ANTHROPIC_BASE_URL": given}).address == "http://localhost:1"


@every_row(
    ("host", "address"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("http://gpu-box:8000/", "http://gpu-box:8000/v1"),
        ("https://gpu-box", "https://gpu-box:443/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("[::1]:9", "http://[::1]:9/v1"),
    ],
)
def test_the_host_of_ollama_is_read_as_ollama_reads_it(host, address):
    assert find_endpoint("ollama:m", {"OLLAMA_HOST": host}).address == address


@every_row("address", ["localhost:8080", "ftp://x", "http://", "http://x:port", "file:///etc", "http://[1"])
def test_an_address_that_is_none_is_an_error(address):
    failure = refusal("openai:m", {"OPENAI_BASE_URL": address})
    assert isinstance(failure, UsageError)
    assert failure.values == {"variable": "OPENAI_BASE_URL", "address": address}


@every_row(("name", "nearest"), [("opnai:x", "openai"), ("antropic:x", "anthropic"), ("OpenAI:x", "openai")])
def test_K2_an_unknown_provider_gets_the_nearest_known(name, nearest):
    failure = refusal(name, {})
    assert isinstance(failure, UsageError)
    assert failure.values["nearest"] == nearest


@every_row("name", ["", ":", "gpt-4o", "??:x"])
def test_a_name_like_nothing_known_gets_the_list(name):
    failure = refusal(name, {})
    assert failure.key == "llm.unknown_provider"
    assert "anthropic" in str(failure.values["known"])


def test_a_provider_without_a_model_gets_an_example():
    assert refusal("openai", {"OPENAI_API_KEY": "k"}).values["example"].startswith("openai:gpt-")


def test_neither_key_nor_password_is_shown():
    endpoint = Endpoint(
        provider=PROVIDERS["openai"], model="m", address="http://me:hush@host/v1", key="sk-secret"
    )
    assert "sk-secret" not in repr(endpoint)
    assert endpoint.shown_address == "http://host/v1"
    assert Endpoint(provider=PROVIDERS["google"], model="m").shown_address == "google"


@every_row(
    ("address", "stays"),
    [
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:1/v1", True),
        ("http://localhost:1", True),
        ("http://api.localhost", True),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_loopback_is_recognised(address, stays):
    assert is_loopback(address) is stays


def test_SAFETY_20_a_key_goes_over_plain_http_only_to_this_machine():
    allowed = {}
    for address in (
        "http://10.0.0.1/v1",
        "http://host:8080/v1",
        "HTTP://host/v1",
        "http://localhost.example",
    ):
        for variable, key, name in (
            ("OPENAI_BASE_URL", "OPENAI_API_KEY", "openai:m"),
            ("OLLAMA_HOST", "OLLAMA_API_KEY", "ollama:m"),
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "anthropic:m"),
        ):
            failure = refusal(name, {variable: address, key: "sk-1"})
            if failure.key != "llm.key_in_the_clear" or "sk-1" in str(failure.values):
                allowed[address, variable] = failure.key
            assert find_endpoint(name, {variable: address}).key == "", "without a key it may be asked"
    assert not allowed
    for address in ("http://127.0.0.1:1/v1", "http://localhost:1/v1", "https://host/v1"):
        assert find_endpoint("openai:m", {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-1"}).key == "sk-1"


def test_M1_a_model_that_its_name_tells_needs_no_provider():
    names = {
        "gpt-6": "openai:gpt-6",
        "o3-pro": "openai:o3-pro",
        "claude-sonnet-5-5": "anthropic:claude-sonnet-5-5",
        "gemini-3.8-flash": "google:gemini-3.8-flash",
        "devstral-large": "mistral:devstral-large",
        "qwen3-coder:30b": "ollama:qwen3-coder:30b",
        "llama4:latest": "ollama:llama4:latest",
        "openai:gpt-6": "openai:gpt-6",
        "opneai:gpt-6": "opneai:gpt-6",
        "embedded": "embedded:qwen2.5-coder-1.5b",
        "embedded:own.gguf": "embedded:own.gguf",
        "mystery": "mystery",
    }
    assert {name: full_name(name, "embedded:qwen2.5-coder-1.5b") for name in names} == names
