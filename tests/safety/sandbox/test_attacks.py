"""G7: attacks by commands get nowhere (SAFETY 9, 10). The cases are in attacks.toml."""

import os
import stat
import tomllib
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.launchers import running_launcher
from fakes.rows import Failures
from fakes.sandbox_world import SECRET, world

CASES = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text("utf-8"))
GAPS = [
    pytest.param(name, level, marks=pytest.mark.xfail(strict=True, reason=reason))
    for name, case in CASES.items()
    for level, reason in case.get("gap", {}).items()
]
PARTS = 3
"""Split the attacks, so that they can run side by side."""


def held(level):
    """Return the names of attacks that get nowhere at this level."""
    kept = {name: case for name, case in CASES.items() if level not in case.get("gap", {})}
    return [name for name, case in kept.items() if not (level == "landlock" and case.get("on_a_copy"))]


async def attack(name, level, around, shell, launcher):
    command = around.fill(CASES[name]["command"], launcher.pid)
    before = sorted(around.workspace.rglob("*"))
    result = await shell.run(command, timeout_s=300)
    assert not around.damage(), result.output
    assert SECRET not in result.output
    assert "GOT IT" not in result.output
    assert result.stopped != "seconds"
    assert launcher.runs()
    if level == "landlock":
        return
    assert sorted(around.workspace.rglob("*")) == before
    if result.copy_id:  # also if the user says yes to all of it
        await shell.apply(result.copy_id, result.effects)
    assert not around.escaped()
    inside = [(path, path.lstat().st_mode) for path in around.workspace.rglob("*")]
    assert not [path for path, mode in inside if mode & 0o6000 or stat.S_ISFIFO(mode)]


@asynccontextmanager
async def attacked(level, open_shell):
    with world() as around:
        shell = await open_shell(
            around.workspace,
            level,
            closed=(around.state,),
            copies=None if level == "landlock" else around.copies,
            env=around.environment(),
            file_mb=5,
            memory_mb=150,
        )
        await shell.run("true")
        yield around, shell, running_launcher()
        await shell.aclose()


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
async def test_G7_an_attack_gets_nowhere(level, part, open_shell):
    """Attacks of one part share a world, which is restored after changes and replaced after a failure."""
    failures, names = Failures(), held(level)[part::PARTS]
    while names:
        async with attacked(level, open_shell) as (around, shell, launcher):
            unhurt = True
            while names and unhurt:
                unhurt = False
                with failures.of(name := names.pop(0)):
                    await attack(name, level, around, shell, launcher)
                    for copy_id in shell.pending_copies:
                        await shell.discard(copy_id)
                    around.renew()
                    unhurt = True
    failures.report()


@pytest.mark.parametrize(("name", "level"), GAPS)
async def test_G7_an_attack_that_is_known_to_get_somewhere(name, level, open_shell):
    async with attacked(level, open_shell) as (around, shell, launcher):
        await attack(name, level, around, shell, launcher)


SMALL = [
    line
    for line in Path(__file__).with_name("small_attacks.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.long
async def test_G7_small_attacks_get_nowhere_either(level, open_shell):
    """All small attacks share one world. An administrator tries a third at each level, a user all."""
    assert len(SMALL) >= 100
    third = ("bubblewrap", "namespaces", "landlock").index(level)
    tried = SMALL if os.geteuid() else SMALL[third::3]
    failures = Failures()
    with world() as around:
        copies = None if level == "landlock" else around.copies
        env = around.environment()
        shell = await open_shell(around.workspace, level, closed=(around.state,), copies=copies, env=env)
        await shell.run("true")
        launcher = running_launcher().pid
        for line in tried:
            if level == "landlock" and line.startswith("copy: "):
                continue
            with failures.of(line):
                result = await shell.run(around.fill(line.removeprefix("copy: "), launcher), timeout_s=300)
                assert not around.damage(), result.output
                assert SECRET not in result.output
                assert "GOT IT" not in result.output, result.output
                assert result.stopped != "seconds"
                if result.copy_id:
                    await shell.apply(result.copy_id, result.effects)
                    assert not around.escaped()
    failures.report()
