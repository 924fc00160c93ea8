"""The team of a session: its agents, their part of the budget, and the choice among attempts."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from duckflow.agents.report import AgentReport
from duckflow.agents.review import review_tool
from duckflow.agents.team import REVIEW_PLACE, ROLE, AgentSetup, Team
from duckflow.agents.tools import UsualCheck, agent_tools
from duckflow.app.opening import Opening
from duckflow.app.resources import SessionResources
from duckflow.config.places import config_dir
from duckflow.domain.errors import ToolError
from duckflow.domain.extensions import CustomAgent
from duckflow.domain.files.effects import Effects
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.i18n.catalogue import current_language
from duckflow.llm.tiers import Tiers
from duckflow.loops.acting.command_effects import difference_shown
from duckflow.loops.acting.file_versions import of_command
from duckflow.loops.thinking.advisor import Advisor
from duckflow.pacemaker.shares import Share, share_of
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.tools.catalogue import Tool

_MOST_PROOF_S = 120
_HERE_ONLY = "relay"
"""Provider whose models no other process can reach."""


def reviews(env: Mapping[str, str]) -> bool:
    """Return whether this session is that of an agent that reviews changes."""
    return Path(
        env.get(REVIEW_PLACE, "/nonexistent")
    ).is_dir()  # False inside the sandbox, where the folder is not visible


def is_agent(env: Mapping[str, str]) -> bool:
    """Return whether this session is that of an agent."""
    return bool(env.get(ROLE))


def rules_outside(env: Mapping[str, str]) -> dict[str, Path]:
    """Return the rules files outside the project: the user's, and for an agent its role."""
    role = env.get(ROLE)
    own = {"your role": Path(role)} if role else {}
    return {"rules of the user for all projects": config_dir() / "AGENTS.md", **own}


def team_tools(
    base: SessionResources,
    opening: Opening,
    models: tuple[Tiers, Advisor],
    env: Mapping[str, str],
    customs: Sequence[CustomAgent],
    reviewed: Mapping[str, bytes | None],
) -> tuple[Tool[Any], ...]:
    """Return the tools for agents, none if they are switched off; for an agent that reviews, its own.

    `reviewed` has the changes that the user asks to review, with the content of the patch if they are one.
    """
    settings, session, (tiers, advisor) = opening.loaded.settings, base.session, models
    if reviews(env):
        from duckflow.agents.proving import finding_tool  # noqa: PLC0415 - only for an agent that reviews

        return (finding_tool(Path(env[REVIEW_PLACE]), base.check_copies),)
    if not settings.agents.enabled:
        return ()

    def setup() -> AgentSetup:
        model = tiers.name("creative")
        provider = model.partition(":")[0]
        if provider == _HERE_ONLY:
            raise ToolError("Agents can't use this session's model, because it answers only this process.")
        return AgentSetup(
            model=model,
            fast=tiers.name("fast"),
            trusted=bool(opening.loaded.project),
            parallel=1 if provider == "embedded" else settings.agents.parallel,
        )

    def differ(effects: Effects, copy: WorkspaceCopy) -> str:
        contents = of_command(base.workspace, copy, effects, base.shell.git_places)
        return difference_shown("", effects, contents, frozenset(), {})

    def share(agents: int) -> Share:
        return share_of(session.state.request, settings.duck_pacemaker, agents)

    async def choose(attempts: Sequence[tuple[AgentReport, Effects, WorkspaceCopy]]) -> int:
        from duckflow.services.attempts import choose_attempt  # noqa: PLC0415 - only for several attempts

        request = session.state.request
        shown = [
            f"{report.reply}\n{await asyncio.to_thread(differ, effects, copy)}"
            for report, effects, copy in attempts
        ]
        return await advisor.ask(choose_attempt(request.text if request else "", shown))

    async def find_check() -> UsualCheck:
        found, chosen = await asyncio.to_thread(ProjectTests(base.workspace).find), session.state.verify
        if chosen is None:
            return UsualCheck(found, found=True)
        return UsualCheck(chosen, found=opening.attended and chosen == found)

    team = Team(base.shell, session.record, env, setup, choose)
    root, seconds = base.workspace.root, float(min(settings.shell.timeout_s, _MOST_PROOF_S))
    is_small = partial(advisor.is_small, "creative")
    review = review_tool(team, root, share, reviewed, is_small, current_language, seconds)
    return (*agent_tools(team, session, share, find_check, {one.name: one for one in customs}), review)
