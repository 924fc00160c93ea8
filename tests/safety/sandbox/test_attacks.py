"""G7: what a command may try, and that it gets nowhere (SAFETY 9, 10). The cases are in attacks.toml."""

import tomllib
from pathlib import Path

import pytest

from fakes.rows import Failures
from fakes.sandbox_world import SECRET, world

CASES = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text("utf-8"))
GAPS = [
    pytest.param(name, level, marks=pytest.mark.xfail(strict=True, reason=reason))
    for name, case in CASES.items()
    for level, reason in case.get("gap", {}).items()
]
HELD = [
    (name, level)
    for name, case in CASES.items()
    for level in ("bubblewrap", "namespaces", "landlock")
    if level not in case.get("gap", {}) and not (level == "landlock" and case.get("on_a_copy"))
]


@pytest.mark.parametrize(("name", "level"), [*HELD, *GAPS])
async def test_G7_an_attack_gets_nowhere(name, level, open_shell):
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
        command = around.fill(CASES[name]["command"], shell._launcher._process.pid)
        before = sorted(around.workspace.rglob("*"))
        result = await shell.run(command, timeout_s=300)
        assert not around.damage(), result.output
        assert SECRET not in result.output
        assert "GOT IT" not in result.output
        assert not result.timed_out
        assert shell._launcher._process.poll() is None
        if level == "landlock":
            return
        assert sorted(around.workspace.rglob("*")) == before
        if result.copy_id:  # also if the user says yes to all of it
            await shell.take_over(result.copy_id, result.effects)
        assert not around.escaped()
        set_id = [path for path in around.workspace.rglob("*") if path.lstat().st_mode & 0o6000]
        assert not set_id
        assert not [path for path in around.workspace.rglob("*") if path.is_fifo()]


SMALL = [
    line
    for line in Path(__file__).with_name("small_attacks.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


async def test_G7_small_attacks_get_nowhere_either(level, open_shell):
    """One world for all of them, so that many cost little."""
    assert len(SMALL) >= 100
    failures = Failures()
    with world() as around:
        copies = None if level == "landlock" else around.copies
        env = around.environment()
        shell = await open_shell(around.workspace, level, closed=(around.state,), copies=copies, env=env)
        await shell.run("true")
        launcher = shell._launcher._process.pid
        for line in SMALL:
            if level == "landlock" and line.startswith("copy: "):
                continue
            with failures.of(line):
                result = await shell.run(around.fill(line.removeprefix("copy: "), launcher), timeout_s=300)
                assert not around.damage(), result.output
                assert SECRET not in result.output
                assert "GOT IT" not in result.output, result.output
                assert not result.timed_out
                if result.copy_id:
                    await shell.take_over(result.copy_id, result.effects)
                    assert not around.escaped()
    failures.report()
