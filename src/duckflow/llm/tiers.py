"""The three tiers (creative, fast, evaluator) and their models. If only one model is set, it serves all."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import get_args

from duckflow.config.settings import LlmSettings
from duckflow.domain.model import ModelClient, TierName
from duckflow.llm.endpoints import full_name

Open = Callable[[str], Awaitable[ModelClient]]


class Tiers:
    """Clients by tier, opened on first use and shared by tiers that name the same model."""

    def __init__(self, settings: LlmSettings, default: str, open_client: Open) -> None:
        """`default` serves a tier for which neither the tier's model nor `model` is set."""
        common = settings.model or default
        tiers: tuple[TierName, ...] = get_args(TierName)
        self._embedded = settings.embedded.full_name
        self._names: dict[TierName, str] = {
            tier: full_name(getattr(settings, tier) or common, self._embedded) for tier in tiers
        }
        self._open = open_client
        self._clients: dict[str, ModelClient] = {}
        self._opening = asyncio.Lock()
        self.by_task = settings.by_task
        """True if simple work goes to the fast tier."""

    def name(self, tier: TierName) -> str:
        """Return the name of the model that serves a tier."""
        return self._names[tier]

    async def client(self, tier: TierName) -> ModelClient:
        """Return the client that serves a tier."""
        return await self._opened(self._names[tier])

    async def use(self, name: str) -> str:
        """Use this model for every tier from now on, and return its full name.

        Raises UserError if it can't be opened.
        """
        name = full_name(name, self._embedded)
        await self._opened(name)
        self._names = dict.fromkeys(self._names, name)
        return name

    async def _opened(self, name: str) -> ModelClient:
        async with self._opening:  # concurrent callers share one client
            if name not in self._clients:
                self._clients[name] = await self._open(name)
            return self._clients[name]

    async def aclose(self) -> None:
        """Close all open clients."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()
