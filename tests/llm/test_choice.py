"""K3: the choice of a model if the user set none."""

from pathlib import Path

import pytest

from duckflow.app.models import choose
from duckflow.config.settings import EmbeddedSettings, LlmSettings, Settings
from duckflow.domain.errors import ProviderError, UsageError
from duckflow.i18n.catalogue import text
from duckflow.llm.default_model import ModelChoice, choose_model, list_models
from duckflow.llm.endpoints import PROVIDERS
from duckflow.llm.providers import open_client
from fakes.model_server import ModelServer, free_port
from fakes.rows import every_row

ORDER = ["anthropic", "openai", "google", "groq", "openrouter", "mistral"]


async def chosen(env: dict[str, str]) -> ModelChoice:
    nobody = {"OLLAMA_HOST": f"127.0.0.1:{free_port()}"}
    choice = await choose_model({**nobody, **env})
    text(choice.reason_key, **choice.values)
    return choice


@every_row("provider", ORDER)
async def test_K3_a_key_in_the_environment_chooses_its_provider(provider):
    row = PROVIDERS[provider]
    for variable in row.key_variables:
        choice = await chosen({variable: "k"})
        assert choice.name == f"{provider}:{row.default_model}"
        assert row.default_model
        assert choice.values["variable"] == variable


async def test_K3_of_several_keys_the_first_in_order_counts():
    env = {PROVIDERS[name].key_variables[0]: "k" for name in ORDER}
    for name in ORDER:
        assert (await chosen(env)).name.startswith(f"{name}:")
        del env[PROVIDERS[name].key_variables[0]]


async def test_K3_an_empty_key_is_none():
    assert (await chosen({"OPENAI_API_KEY": " "})).name == "embedded"


async def test_K3_a_running_ollama_is_next():
    with ModelServer() as server:
        server.pages["/api/tags"] = {
            "models": [{"name": "nomic-embed-text:latest"}, {"name": "qwen3:8b"}, {"name": "b"}]
        }
        choice = await chosen({"OLLAMA_HOST": server.url})
        assert choice.name == "ollama:qwen3:8b"
        assert choice.values["address"] == server.url
        assert (await chosen({"OLLAMA_HOST": server.url, "GROQ_API_KEY": "k"})).name.startswith("groq:")


@every_row("tags", [404, b"nonsense", {"models": []}, {"models": [{}]}, {"models": None}])
async def test_K3_an_ollama_without_models_does_not_count(tags):
    with ModelServer() as server:
        server.pages["/api/tags"] = tags
        assert (await chosen({"OLLAMA_HOST": server.url})).name == "embedded"


async def test_K3_else_the_embedded_model():
    choice = await chosen({})
    assert (choice.name, choice.reason_key) == ("embedded", "llm.chosen_embedded")


async def test_K3_an_own_server_is_asked_for_its_model():
    with ModelServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "qwen-local"}]}
        choice = await chosen({"OPENAI_BASE_URL": f"{server.url}/v1"})
        assert choice.name == "openai:qwen-local"
        assert choice.values == {"variable": "OPENAI_BASE_URL", "address": f"{server.url}/v1"}
        server.pages["/v1/models"] = 404
        fallback = await chosen({"OPENAI_BASE_URL": f"{server.url}/v1"})
        assert fallback.name == f"openai:{PROVIDERS['openai'].default_model}"


async def test_K3_an_unusable_address_is_said_and_not_passed_over():
    with pytest.raises(UsageError):
        await chosen({"OPENAI_BASE_URL": "nonsense"})


async def test_models_are_suggested_from_own_servers_and_keys():
    with ModelServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "qwen-local"}, {"id": "text-embedding"}]}
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_API_KEY": "k", "GROQ_API_KEY": "\x01"}
        assert await list_models(env) == [
            f"anthropic:{PROVIDERS['anthropic'].default_model}",
            "openai:qwen-local",
        ]


async def test_K2_the_embedded_model_is_called_by_its_own_name(tmp_path: Path):
    """A session stores which model it was, and the status line shows it (M1)."""
    small = LlmSettings(embedded=EmbeddedSettings(model="qwen2.5-coder-0.5b"))
    own = LlmSettings(embedded=EmbeddedSettings(path=tmp_path / "own.gguf"))
    named = LlmSettings(model="embedded")
    env = {"OLLAMA_HOST": f"127.0.0.1:{free_port()}"}
    found = [(await choose(Settings(llm=llm), env)).name for llm in (small, own, named)]
    assert found == [
        "embedded:qwen2.5-coder-0.5b",
        f"embedded:{tmp_path}/own.gguf",
        "embedded:qwen2.5-coder-1.5b",
    ]
    with pytest.raises(ProviderError) as refused:
        await open_client("embedded:qwen2.5-coder-0.5b", LlmSettings(), {})
    assert refused.value.key == "embedded.not_installed", "a known name is no file"
