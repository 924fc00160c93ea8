"""The models of a session and their prices."""

from collections.abc import Mapping
from typing import get_args

from duckflow.app.opening import Opening
from duckflow.app.places import WINDOWS
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.domain.events import ErrorReported
from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelClient, TierName, Usage
from duckflow.llm.default_model import ModelChoice, choose_model
from duckflow.llm.endpoints import full_name
from duckflow.llm.pricing import cost_usd
from duckflow.llm.providers import OpenModel, open_client
from duckflow.llm.tiers import Tiers
from duckflow.llm.windows import LearnedWindows
from duckflow.loops.session import Session
from duckflow.loops.thinking.advisor import Advisor
from duckflow.loops.thinking.pictures import PictureClient
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.redaction.model import RedactedModel
from duckflow.store.kept_files import KeptFiles


async def choose(settings: Settings, env: Mapping[str, str]) -> ModelChoice:
    """Choose the model of a session, and give the reason."""
    named = settings.llm.creative or settings.llm.model
    if named:
        choice = ModelChoice(name=named, reason_key="llm.chosen_by_setting")
    else:
        choice = await choose_model(env)
    return replace(choice, name=full_name(choice.name, settings.llm.embedded.full_name))


async def unknown_prices(
    tiers: Tiers, settings: Settings, env: Mapping[str, str]
) -> tuple[ErrorReported, ...]:
    """Return a notice for each model without a known price, if there is a limit on cost (I9)."""
    if settings.duck_pacemaker.budget.max_cost_usd is None:
        return ()
    models = dict.fromkeys(tiers.name(tier) for tier in get_args(TierName))
    unknown = [name for name in models if await cost_usd(name, Usage(input_tokens=1), env) is None]
    return tuple(ErrorReported(key="limit.no_price", values={"model": name}, notice=True) for name in unknown)


def open_models(
    opening: Opening,
    choice: ModelChoice,
    session: Session,
    workspace: Workspace,
    kept: KeptFiles,
    env: Mapping[str, str],
    others: Mapping[str, OpenModel],
) -> tuple[Tiers, Advisor]:
    """Return the models of a session, which are never sent secrets, and the advisor that asks them."""
    settings, relay, asked = opening.loaded.settings, opening.relay, opening.asked
    learned = LearnedWindows(state_dir() / WINDOWS)

    async def opened(name: str) -> ModelClient:
        client = await open_client(name, settings.llm, env, relay, asked, others, learned)
        # The prompts of small models have no pictures.
        seeing = client if client.traits.small else PictureClient(client, workspace, kept)
        return RedactedModel(seeing, session.redactor)

    async def price(name: str, usage: Usage) -> float | None:
        return await cost_usd(name, usage, env)

    tiers = Tiers(settings.llm, choice.name, opened)
    return tiers, Advisor(session, tiers, price)
