"""K4: what a call cost, without asking anybody."""

import sys

import pytest

from duckflow.domain.model import Usage
from duckflow.llm.pricing import cost_usd
from fakes.rows import every_row

MILLION = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


async def test_K4_a_known_model_has_a_price_and_cached_tokens_cost_less():
    full = await cost_usd("openai:gpt-4o", MILLION, {})
    cached = await cost_usd("openai:gpt-4o", MILLION.model_copy(update={"cached_tokens": 900_000}), {})
    assert full == pytest.approx(12.5)
    assert cached is not None
    assert 0 < cached < full


@every_row(
    ("name", "plain", "written"),
    [
        ("openai:gpt-6.1-terra", 0.1, 0.125),
        ("openai:gpt-5.6", 0.4, 0.5),
        ("openai:gpt-5", 0.125, 0.125),
        ("anthropic:claude-sonnet-4-5", 0.3, 0.375),
        ("openrouter:anthropic/claude-sonnet-4.5", 0.3, 0.375),
    ],
)
async def test_K4_tokens_put_into_the_cache_are_priced_as_billed(name, plain, written):
    read = Usage(input_tokens=100_000)
    kept = Usage(input_tokens=100_000, cache_written_tokens=100_000)
    assert await cost_usd(name, read, {}) == pytest.approx(plain)
    assert await cost_usd(name, kept, {}) == pytest.approx(written)


@every_row("name", ["anthropic:claude-sonnet-5-5", "google:gemini-3.8-flash", "groq:openai/gpt-oss-120b"])
async def test_K4_the_default_models_have_prices(name):
    assert (await cost_usd(name, MILLION, {}) or 0) > 0


@every_row("name", ["embedded", "embedded:/x.gguf", "scripted:/x", "ollama:llama3.2"])
async def test_K4_what_runs_here_is_free(name):
    assert await cost_usd(name, MILLION, {}) == 0.0


@every_row("name", ["openai:no-such-model-at-all", "relay", "nobody:x", "", "azure:x"])
async def test_K4_an_unknown_price_is_unknown(name):
    assert await cost_usd(name, MILLION, {}) is None


async def test_K4_an_own_servers_price_is_unknown():
    assert await cost_usd("openai:gpt-4o", MILLION, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}) is None


async def test_K4_a_fault_in_the_price_list_costs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert await cost_usd("openai:gpt-4o", MILLION, {}) is None
    assert await cost_usd("openai:gpt-4o", MILLION, {"OPENAI_BASE_URL": "nonsense"}) is None
