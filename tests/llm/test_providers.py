"""Models are opened by name, with their own parts only (K2, N)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.config.settings import LlmSettings
from duckflow.domain.errors import ProviderError, Unavailable, UsageError
from duckflow.domain.model import ChatMessage, ModelRequest, Retrying, StreamEnd, TextPiece
from duckflow.i18n.catalogue import text
from duckflow.llm.local.relay import Relay
from duckflow.llm.providers import open_client
from fakes.model_server import Answer, Fault, ModelServer
from fakes.rows import every_row

REQUEST = ModelRequest(output="Decision", messages=(ChatMessage(role="user", text="hi"),), time_limit_s=120.0)
ONCE = LlmSettings(max_retries=0)


async def said(
    name: str, env: dict[str, str], settings: LlmSettings = ONCE, relay: Relay | None = None
) -> str:
    client = await open_client(name, settings, env, relay)
    try:
        pieces = [piece async for piece in client.stream(REQUEST)]
    finally:
        await client.aclose()
    assert isinstance(pieces[-1], StreamEnd)
    assert client.traits.name == name
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


@every_row(
    ("provider", "variable", "base", "path"),
    [
        ("openai", "OPENAI_BASE_URL", "/v1", "/v1/chat/completions"),
        ("groq", "GROQ_BASE_URL", "/openai/v1", "/openai/v1/chat/completions"),
        ("openrouter", "OPENROUTER_BASE_URL", "/api/v1", "/api/v1/chat/completions"),
        ("mistral", "MISTRAL_BASE_URL", "/v1", "/v1/chat/completions"),
        ("ollama", "OLLAMA_HOST", "", "/v1/chat/completions"),
        ("anthropic", "ANTHROPIC_BASE_URL", "", "/v1/messages"),
    ],
)
async def test_K2_each_provider_is_reached_over_its_wire(provider, variable, base, path):
    with ModelServer([Answer("hello")]) as server:
        assert await said(f"{provider}:m-7b", {variable: server.url + base}) == "hello"
        assert server.requests[0].path == path
        assert server.requests[0].body["model"] == "m-7b"


async def test_K2_a_script_is_a_model(tmp_path: Path):
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps({"text": "from the script"}))
    assert await said(f"scripted:{file}", {}) == "from the script"


async def test_K2_a_person_is_a_model():
    class Person:
        async def show(self, prompt: str) -> None:
            assert prompt == "hi"

        async def read(self) -> str:
            return "pasted"

    assert await said("relay", {}, relay=Person()) == "pasted"


async def test_K2_without_a_person_the_relay_says_so():
    with pytest.raises(ProviderError, check=lambda error: error.key == "llm.relay_headless"):
        await said("relay", {})


@every_row("name", ["scripted", "scripted:"])
async def test_a_script_needs_a_file(name):
    with pytest.raises(UsageError) as caught:
        await open_client(name, ONCE, {})
    text(caught.value.key, **caught.value.values)


async def test_K4_a_busy_provider_is_asked_as_often_as_the_settings_say():
    busy = Fault(503, headers={"Retry-After": "0"})
    with ModelServer([busy, busy, busy, Answer("never heard")]) as server:
        client = await open_client(
            "openai:m", LlmSettings(max_retries=2), {"OPENAI_BASE_URL": f"{server.url}/v1"}
        )
        pieces = []
        with pytest.raises(Unavailable):
            await _collect(client, pieces)
        await client.aclose()
        assert len(server.requests) == 3
    assert [type(piece) for piece in pieces] == [Retrying, Retrying]


async def _collect(client, pieces: list) -> None:
    async for piece in client.stream(REQUEST):
        pieces.append(piece)  # noqa: PERF401 - what came before the error counts


async def test_a_provider_whose_extra_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "duckflow.llm.wire.pydantic_ai", raising=False)
    with pytest.raises(ProviderError) as caught:
        await open_client("google:gemini-3.8-flash", ONCE, {"GOOGLE_API_KEY": "k"})
    assert caught.value.key == "llm.extra_missing"
    assert "duckflow[providers]" in text(caught.value.key, **caught.value.values)


def test_nothing_heavy_is_imported_before_it_is_needed():
    heavy = ("httpx2", "pydantic_ai", "genai_prices", "xllamacpp", "openai", "rich", "prompt_toolkit")
    script = (
        "import sys, duckflow.llm.providers, duckflow.llm.default_model, duckflow.llm.pricing;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
