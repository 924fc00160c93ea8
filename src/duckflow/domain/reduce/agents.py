"""Applies events of agents: the state lists those that are at work (O1, O2)."""

from duckflow.domain.events import AgentMoved, AgentStarted
from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState
from duckflow.domain.work.agents import RunningAgent


def start_agent(state: AgentState, event: AgentStarted) -> AgentState:
    """Add an agent to those at work."""
    begun = RunningAgent(agent_id=event.agent_id, name=event.name, kind=event.kind, task=event.task)
    return replace(state, agents=(*state.agents, begun))


def move_agent(state: AgentState, event: AgentMoved) -> AgentState:
    """Note the last news of an agent."""
    news = event.model_dump(exclude={"type", "agent_id", "vitals"})
    moved = (
        replace(one, vitals=event.vitals, **news) if one.agent_id == event.agent_id else one
        for one in state.agents
    )
    return replace(state, agents=tuple(moved))


def end_agent(state: AgentState, agent_id: str) -> AgentState:
    """Remove an agent that has ended."""
    return replace(state, agents=tuple(one for one in state.agents if one.agent_id != agent_id))
