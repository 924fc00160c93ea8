"""Agents: helpers that explore or work on copies of the folder during a request (O1-O3)."""

from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.work.outcomes import RequestOutcome

AgentKind = Literal["explores", "works", "joins", "reviews"]
"""An agent answers a question, does a task, joins what others did to the same lines, or reviews changes."""

AgentOutcome = RequestOutcome | Literal["failed"]
"""Outcome of an agent's request; `failed` if its process could not do any."""


class RunningAgent(Frozen):
    """An agent at work, as its last news describe it."""

    agent_id: str
    name: str
    kind: AgentKind
    task: str
    loops: int = 0
    vitals: Vitals = Vitals.model_construct()
    operation: str = ""
    """Operation that it carries out; empty while its model thinks."""
    about: str = ""
    """File or command of that operation."""
