"""A model server that plays the lead and each of its agents, identified by words in their tasks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fakes import warm
from fakes.engine import action, decision
from fakes.model_server import ModelServer, Reply
from fakes.plays import asked_for, play

Player = Callable[[dict[str, Any]], Reply]


def agents(operation: str, **args: Any) -> dict[str, Any]:
    """An action of the tools for agents."""
    return {"operation": f"agent.{operation}", "args": args}


def writes(path: str, content: str) -> Player:
    """An agent that writes one file."""
    written = action("write_file", path=path, content=content)
    return play(decision("I write it.", written), decision("It is there."))


def casting(lead: Player, parts: dict[str, Player]) -> Player:
    """Give each request of an agent to the first player whose mark is in its task; the rest is the lead's."""

    def answer(body: dict[str, Any]) -> Reply:
        text = json.dumps(body, ensure_ascii=False)
        if "[your role]" not in text and asked_for(body) == "Decision":
            return lead(body)
        found = (player for mark, player in parts.items() if re.search(rf"\b{mark}\b", text))
        return next(found, lead)(body)

    return answer


def command(folder: Path, task: str, *flags: str) -> list[str]:
    """Return the command line of one request in a folder."""
    start = [sys.executable, "-m", "duckflow", "run", task, "--model", "openai:any"]
    return [*start, "--workspace", str(folder), "--json", *flags]


def environment(server: ModelServer) -> dict[str, str]:
    """Return the environment in which the server is the model."""
    return {**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}


def of_type(events: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the events of one type."""
    return [one for one in events if one["type"] == kind]


def read_events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the events that a program printed."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def duckflow(
    folder: Path, server: ModelServer, task: str, *flags: str
) -> tuple[int, list[dict[str, Any]], str]:
    """Do one request; return the exit code, the events, and the errors."""
    done = warm.run(
        command(folder, task, *flags),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(server),
        timeout=300,
        check=False,
    )
    return done.returncode, read_events(done), done.stderr
