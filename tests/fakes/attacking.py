"""Runs all attacks one after the other in one world, as the current user.

python -m fakes.attacking LEVEL 1
"""

import asyncio
import json
import sys
import tomllib
from pathlib import Path

from duckflow.config.settings import ShellSettings
from duckflow.safety.sandbox.shell import Shell
from fakes.launchers import running_launcher
from fakes.sandbox_world import SECRET, World, world

FOLDER = Path(__file__).parent.parent / "safety" / "sandbox"
CASES = tomllib.loads((FOLDER / "attacks.toml").read_text("utf-8"))


def attacks_on(level: str) -> dict[str, str]:
    """Return the attacks that this level stops, by name, except slow ones."""
    small = (FOLDER / "small_attacks.txt").read_text("utf-8").splitlines()
    chosen = {line: line for line in small if not line.startswith("#")}
    chosen |= {name: case["command"] for name, case in CASES.items() if not case.get("large")}
    left_out = {name for name, case in CASES.items() if level in case.get("gap", {})}
    if level == "landlock":
        left_out |= {
            name for name in chosen if CASES.get(name, {}).get("on_a_copy") or name.startswith("copy: ")
        }
    return {name: command for name, command in chosen.items() if name not in left_out}


async def wrong_with(shell: Shell, around: World, command: str) -> str:
    """Return what a command got although it should not, empty if nothing."""
    filled = around.fill(command.removeprefix("copy: "), running_launcher().pid)
    result = await shell.run(filled, timeout_s=300)
    found = around.damage()
    found += [word for word in (SECRET, "GOT IT") if word in result.output]
    found += ["it went on too long"] if result.stopped == "seconds" else []
    if result.copy_id:
        await shell.discard(result.copy_id)
    return f"{found}: {result.output[-300:]}" if found else ""


async def attack_all(level: str, step: int = 1) -> dict[str, object]:
    """Return the sandbox that was found and all failures. `step` tries only every n-th attack."""
    with world() as around:
        copies = None if level == "landlock" else around.copies
        settings = ShellSettings(sandbox=level, file_mb=5, memory_mb=150)
        shell = Shell(
            around.workspace, settings, closed=(around.state,), copies=copies, env=around.environment()
        )
        try:
            found = await shell.sandbox()
            wrong: dict[str, str] = {}
            chosen = [*attacks_on(level).items()][::step]
            commands = dict(chosen) if found.level == level else {}
            await shell.run("true")
            for name, command in commands.items():
                if said := await wrong_with(shell, around, command):
                    wrong[name] = said
        finally:
            await shell.aclose()
        return {"level": found.level, "values": found.values, "tried": len(commands), "wrong": wrong}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(attack_all(sys.argv[1], int(sys.argv[2])))))
