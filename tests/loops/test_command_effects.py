"""What commands do is judged by what they did: each mode, each kind of effect (SPEC G3, G5, G8, G9, G10)."""

import os
import stat
from pathlib import Path
from typing import Any

from duckflow.domain.events import ActionFinished, ApprovalRequested
from fakes.engine import Watched, decision, engine


def run(command: str, **more: Any) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command, **more}}


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that is in a folder, byte by byte, with its bits."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path).encode()
        else:
            content = path.read_bytes() if path.is_file() else b"folder"
        found[str(path.relative_to(folder))] = (stat.S_IMODE(status.st_mode), content)
    return found


async def try_out(folder: Path, mode: str, command: str) -> tuple[str, list[str], Watched]:
    """How the request ended, what was asked, and all that happened."""
    async with engine(folder, decision("", run(command)), decision("Done."), mode=mode) as duck:
        outcome = await duck.app.chat.say("go")
        asked = [event.approval.action.operation for event in duck.of(ApprovalRequested)]
        return outcome, asked, duck


LOOKS = "cat a.txt; ls; python3 -c 'print(1)'"
CHANGES = "echo more >> a.txt; echo x > new.txt"
DELETES = "rm a.txt"
PROTECTED = "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml"
EXECUTABLE = "printf '#!/bin/sh\\n' > go.sh; chmod +x go.sh"
BUILDS = "mkdir -p node_modules/x && echo 1 > node_modules/x/i.js"
FAILS = "echo half >> a.txt; exit 1"
FAILS_WITH_CACHE = "mkdir -p __pycache__ && echo 1 > __pycache__/a.pyc; exit 1"

ASKS = {
    #                 plan   ask    edits  auto
    LOOKS: (False, False, False, False),
    CHANGES: (False, True, False, False),
    DELETES: (False, True, True, False),
    PROTECTED: (False, True, True, True),
    EXECUTABLE: (False, True, True, True),
    BUILDS: (False, True, False, False),
    FAILS: (False, True, True, True),
    FAILS_WITH_CACHE: (False, True, False, False),
}
"""Which mode asks about which command, once it has run."""


async def test_G3_each_mode_asks_about_the_effects_it_should_and_changes_nothing_before(tmp_path: Path):
    wrong: list[str] = []
    for number, (command, asks) in enumerate(ASKS.items()):
        for mode, expected in zip(("plan", "ask", "edits", "auto"), asks, strict=True):
            folder = tmp_path / f"{number}-{mode}"
            folder.mkdir()
            (folder / "a.txt").write_text("one\n")
            before = tree(folder)
            outcome, asked, duck = await try_out(folder, mode, command)
            if bool(asked) is not expected or (asked and outcome != "awaiting_approval"):
                wrong.append(f"{mode}: {command}: asked {asked}, {outcome}")
            stays = expected or mode == "plan" or command == LOOKS
            if (tree(folder) == before) is not stays:
                wrong.append(f"{mode}: {command}: the folder is {sorted(tree(folder))}")
            if mode == "plan" and command == CHANGES and "Thrown away" not in duck.of(ActionFinished)[0].text:
                wrong.append("plan does not say that it threw something away")
    assert not wrong
