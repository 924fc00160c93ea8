"""Whole sessions over HTTP against a scripted model, and the prompts that really went over the wire."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import asked_for, play

RULES = "# Rules\n\n" + "\n".join(
    f"- Rule {number}: keep functions short and write a test for what you change." for number in range(1, 39)
)


def make_project(folder: Path) -> Path:
    """A project of twenty files and a rules file of forty lines."""
    for number in range(19):
        file = folder / "src" / f"part_{number:02}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'"""Part {number}."""\n\n\ndef value() -> int:\n    return {number}\n', "utf-8")
    (folder / "README.md").write_text("# Parts\n\nNineteen of them.\n", "utf-8")
    (folder / "AGENTS.md").write_text(RULES, "utf-8")
    return folder


def small_looks(count: int) -> list[str]:
    """Decisions that look at something small, and a last one that is done."""
    looks = [
        decision(
            "",
            action("read_file", path=f"src/part_{number % 19:02}.py")
            if number % 3
            else action("list_files", pattern=f"src/part_1{number % 10}*"),
            rationale="It may hold the value that is asked for.",
            step="EXECUTION",
            confidence=0.9,
        )
        for number in range(count - 1)
    ]
    return [*looks, decision("The value is 7.")]


async def send(folder: Path, said: Sequence[str], answers: Sequence[str]) -> list[str]:
    """What was sent for each decision, while the user said this and the model answered that."""
    with ModelServer(play(*answers)) as server:
        async with engine(folder, server=server, max_loops=1000) as duck:
            for text in said:
                await duck.app.chat.say(text)
        bodies = [asked.body for asked in server.requests]
        return [written(body) for body in bodies if asked_for(body) == "Decision"]


def written(body: dict[str, Any]) -> str:
    """All that a request says, in order: the tools first, as providers read them."""
    tools = json.dumps(body.get("tools", ""), ensure_ascii=False)
    return tools + "".join(_said(message) for message in body["messages"])


def _said(message: dict[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return (message["content"] or "") + (json.dumps(calls, ensure_ascii=False) if calls else "")


def repeated(prompts: Sequence[str]) -> list[int]:
    """How many characters of each prompt repeat the beginning of the one before it."""
    return [_same(before, now) for before, now in zip(["", *prompts], prompts, strict=False)]


def median_share(prompts: Sequence[str]) -> float:
    """The part of a prompt that repeats the one before it, in the middle case; the first has none."""
    shares = [same / len(prompt) for prompt, same in zip(prompts, repeated(prompts), strict=True)]
    return statistics.median(shares[1:])


def _same(before: str, now: str) -> int:
    pairs = enumerate(zip(before, now, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(before), len(now)))


def cost(prompts: Sequence[str]) -> float:
    """Characters that are new, and a tenth of those that repeat, over all calls."""
    return sum(
        len(prompt) - same + same / 10 for prompt, same in zip(prompts, repeated(prompts), strict=True)
    )
