"""Cost of a model call, from the price list that ships with `genai-prices`; nothing is fetched."""

import asyncio
from collections.abc import Mapping

from duckflow.domain.model import Usage
from duckflow.llm.endpoints import PROVIDERS, Provider, find_address

FREE = ("embedded", "scripted", "ollama")
"""Providers that run on the user's machine."""


async def cost_usd(name: str, usage: Usage, env: Mapping[str, str]) -> float | None:
    """Return the US dollars that one call of model `name` cost, None if unknown. Never raises."""
    kind, _, model = name.partition(":")
    if kind in FREE:
        return 0.0
    provider = PROVIDERS.get(kind)
    return None if provider is None else await asyncio.to_thread(_look_up, provider, model, usage, env)


def _look_up(provider: Provider, model: str, usage: Usage, env: Mapping[str, str]) -> float | None:
    try:
        # At an address that the user has set, a model's name says nothing about its price.
        if find_address(provider, env) != provider.address:
            return None
        import genai_prices  # noqa: PLC0415 - the import takes 0.25 s; delayed until the first answer

        tokens = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_written_tokens,
            output_tokens=usage.output_tokens,
        )
        return float(genai_prices.calc_price(tokens, model, provider_id=provider.name).total_price)
    except Exception:  # noqa: BLE001 - an error in the price library must not stop the work
        return None
