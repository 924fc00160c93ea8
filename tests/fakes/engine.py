"""A whole engine on a scripted model, in a temporary folder, with everything it shows kept."""

import json
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.config.loading import LoadedSettings
from duckflow.config.settings import LlmSettings, Settings
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.live_updates import LiveUpdate
from duckflow.llm.default_model import ModelChoice
from fakes.home import NO_SYSTEM_GIT


def decision(reply: str = "", *actions: dict[str, Any], **fields: Any) -> str:
    """Return a Decision as a model writes it, to continue if there are actions, else done."""
    body = {"next_step": "continue" if actions else "done", "reply": reply, "actions": list(actions)}
    return json.dumps({**body, **fields}, ensure_ascii=False)


def action(operation: str, **args: Any) -> dict[str, Any]:
    """Return an action of the file tools."""
    return {"operation": f"file_ops.{operation}", "args": args}


CONTENT: dict[str, Any] = {
    "RequirementList": {"requirements": [{"requirement": "what was asked for is there"}]},
    "SatisfactionEvaluation": {
        "requirement_scores": [
            {"requirement": "1", "score": 1.0, "evidence": ["reply", *(f"e{n}" for n in range(1, 200))]}
        ],
        "completion_recommendation": True,
    },
}
"""Default answers, of a model that is content with everything, for questions without a scripted one."""


def write_script(path: Path, answers: Sequence[str | dict[str, Any]]) -> Path:
    """Write a scripted model's file; plain text answers a request for a Decision."""
    lines = [{"for": "Decision", "text": one} if isinstance(one, str) else one for one in answers]
    named = {line["for"] for line in lines}
    for output, answer in CONTENT.items():
        lines += [{"for": output, "text": json.dumps(answer)}] * (0 if output in named else 20)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


@dataclass
class Watched:
    """An engine and everything that it showed."""

    app: App
    events: list[Event] = field(default_factory=list)
    live_updates: list[LiveUpdate] = field(default_factory=list)

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        """Keep every update."""
        if isinstance(what, StoredEvent):
            self.events.append(what.event)
        else:
            self.live_updates.append(what)

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def state(self):
        """The newest state."""
        return self.app.session.state


@asynccontextmanager
async def engine(folder: Path, *answers: str | dict[str, Any], mode: str = "edits", **options: Any):
    """`async with engine(tmp_path, decision("hello")) as duck: await duck.app.chat.say("hi")`.

    With `server`, the answers come over HTTP from there.
    """
    server = options.pop("server", None)
    env = dict(NO_SYSTEM_GIT)
    env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url} if server else {}
    env |= {"ANTHROPIC_API_KEY": "test"} if server else {}
    script = write_script(folder.parent / f"{folder.name}.jsonl", answers)
    name = options.pop("model", "openai:any") if server else f"scripted:{script}"
    traits = {trait: options.pop(trait, "auto") for trait in ("small", "sees")}
    llm = LlmSettings.model_validate({"model": name, "max_retries": 0, **traits, **options.pop("llm", {})})
    limits = {
        "dynamic_limits": {"hard_max_loops": options.pop("max_loops", 20)},
        "budget": options.pop("budget", {}),
        "learning": options.pop("learning", {}),
    }
    memory = options.pop("memory", {})
    # Checks start programs, so they are off unless a test asks for them.
    checks = options.pop("checks", {"after_edit": False, "before_verdict": False})
    given = {"llm": llm, "duck_pacemaker": limits, "memory": memory, "checks": checks}
    env |= {"PATH": options.pop("path")} if "path" in options else {}
    parts = {part: options.pop(part, {}) for part in ("shell", "mcp", "web", "hooks", "code")}
    settings = Settings.model_validate({"mode": mode, **parts, **given})
    choice = ModelChoice(name=name, reason_key="llm.chosen_by_setting")
    loaded = LoadedSettings(settings=settings, sources={}, project=options.pop("project", None) or {})
    session, attended = options.pop("session", None), options.pop("attended", False)
    app = App(Opening(loaded, folder, session, attended=attended), choice, env)
    watched = Watched(app)
    app.session.subscribe(watched)
    try:
        app.begin()
        yield watched
    finally:
        await app.aclose()
