"""Reads the events that an agent's process prints into a report."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from duckflow.domain.events import AgentMoved, Event, UsageReported
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.text import one_line
from duckflow.domain.work.agents import AgentOutcome

_ABOUT = 120


class AgentReport(Frozen):
    """An agent's reply and results so far."""

    agent_id: str
    name: str
    outcome: AgentOutcome = "failed"
    reply: str = ""
    satisfaction: float | None = None
    missing: tuple[str, ...] = ()
    """Aspects that its verdict found missing."""
    passed: int = 0
    failed: int = 0
    """Numbers of checks of its last verdict."""
    loops: int = 0
    vitals: Vitals = Vitals.model_construct()
    problem: str = ""

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """Order of reports: satisfied, nothing failed, most checks passed, best score."""
        done = self.outcome in ("done", "accepted")
        return done, not self.failed, self.passed, self.satisfaction or 0.0


def read_event(report: AgentReport, said: Mapping[str, Any]) -> tuple[AgentReport, tuple[Event, ...]]:
    """Return the report after one event of the agent, and what the user's session records of it."""
    match said.get("type"):
        case "decision":
            return replace(report, loops=int(said["loop"])), ()
        case "reply":
            return replace(report, reply=str(said["text"])), ()
        case "vitals":
            report = replace(report, vitals=Vitals.model_validate(said["vitals"]))
            return report, (_moved(report),)
        case "action_started":
            args: dict[str, Any] = said["action"]["args"]
            about = str(args.get("path") or args.get("command") or args.get("pattern") or "")
            return report, (_moved(report, said["action"]["operation"], one_line(about, _ABOUT)),)
        case "evaluation":
            verdict: dict[str, Any] = said["evaluation"]
            results: list[dict[str, Any]] = said["results"]
            states = [one["state"] for one in results if not one["before"]]
            judged = replace(
                report,
                satisfaction=verdict["overall_score"],
                missing=tuple(verdict["missing_aspects"]),
                passed=states.count("passed"),
                failed=states.count("failed"),
            )
            return judged, ()
        case "usage":
            try:
                body = {key: value for key, value in said.items() if key not in ("seq", "at")}
                return report, (UsageReported.model_validate(body),)
            except ValidationError:
                return report, ()
        case "error" if not said.get("notice"):
            return replace(report, problem=one_line(str(said.get("message", "")), 3 * _ABOUT)), ()
        case "consultation_requested" | "approval_requested":
            asked = said.get("message") or said.get("approval", {}).get("rationale", "")
            return replace(report, problem=one_line(str(asked), 3 * _ABOUT)), ()
        case "request_finished":
            return replace(report, outcome=said["outcome"]), ()
        case _:
            return report, ()


def _moved(report: AgentReport, operation: str = "", about: str = "") -> AgentMoved:
    return AgentMoved(
        agent_id=report.agent_id, loops=report.loops, vitals=report.vitals, operation=operation, about=about
    )
