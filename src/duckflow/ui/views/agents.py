"""Lines about agents: those that start and end, and those at work (O3)."""

from collections.abc import Iterator, Sequence

from duckflow.domain.events import AgentEnded, AgentStarted
from duckflow.domain.extensions import CustomAgent
from duckflow.domain.pacing.vitals import VITALS, face_of
from duckflow.domain.state import AgentState
from duckflow.domain.work.agents import RunningAgent
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.views.live.progress import action_name


def agent_started_line(event: AgentStarted) -> str:
    """Return a line about an agent that starts."""
    if event.kind == "joins":
        return text("agents.joins")
    return text(f"agents.{event.kind}", name=on_one_line(event.name), task=on_one_line(event.task))


def agent_ended_line(event: AgentEnded) -> str:
    """Return a line about what an agent has achieved."""
    outcome = text(f"agents.outcome.{event.outcome}")
    score = f" {event.satisfaction:.0%}" if event.satisfaction is not None else ""
    said = text("agents.ended", name=on_one_line(event.name), outcome=outcome + score, loops=event.loops)
    files = text("agents.files", count=event.files) if event.files else ""
    problem = on_one_line(event.problem) if event.outcome not in ("done", "accepted") else ""
    return " ".join(part for part in (said, files, problem) if part)


def agent_lines(state: AgentState, customs: Sequence[CustomAgent]) -> Sequence[str]:
    """Return a line for each agent at work, and one for each custom agent."""
    lines = [running_line(one) for one in state.agents] or [text("agents.none")]
    return [*lines, *_custom_lines(customs)]


def running_line(agent: RunningAgent) -> str:
    """Return a line about an agent at work: its vitals, its loops, and what it is doing."""
    args = {"path": agent.about} if agent.about else {}
    doing = action_name(agent.operation, args) if agent.operation else text("activity.unknown")
    shown = {"name": on_one_line(agent.name), "loops": agent.loops, "doing": doing}
    faces = "".join(face_of(name, getattr(agent.vitals, name)) for name in VITALS)
    return f"{faces} {text('agents.running', **shown)}"


def _custom_lines(customs: Sequence[CustomAgent]) -> Iterator[str]:
    for one in customs:
        whose = text("skills.project" if one.own else "skills.user")
        yield f"{one.name}  ({whose})  {on_one_line(one.description)}"
