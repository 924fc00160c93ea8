"""Shells in each sandbox that works here. If one does not work, the probe's message says why."""

import sys
from pathlib import Path

import pytest

from duckflow.config.settings import ShellSettings
from duckflow.safety.sandbox.child import landlock
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.levels import Level
from source_tree import ROOT

NOT_INSTALLED = ROOT / ".venv" / "duckflow-no-bubblewrap"
"""Reason why the set-up could not install bubblewrap, written by the set-up."""


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """Return a folder on a disk, because a sandbox has a separate /dev."""
    return disk_path


async def require(shell: Shell, level: Level) -> None:
    """Skip the test only for a reason that a probe gave; otherwise fail (SAFETY 9)."""
    found = await shell.sandbox()
    if found.level == level:
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("there is no sandbox but on Linux")
    if level == "bubblewrap" and found.reason == "sandbox.bubblewrap_fails_alone":
        pytest.skip(f"this system refuses bubblewrap: {found.values['said']}")
    if level == "bubblewrap" and NOT_INSTALLED.exists():
        pytest.skip(NOT_INSTALLED.read_text("utf-8").strip())
    if level == "namespaces" and found.reason == "sandbox.namespaces_fail":
        pytest.skip(f"this system refuses namespaces: {found.values['said']}")
    if level == "landlock" and landlock.version() < landlock.OLDEST:
        pytest.skip(f"this kernel has Landlock {landlock.version()}, {landlock.OLDEST} is needed")
    pytest.fail(f"no {level} here, and no probe says why: {found}")


@pytest.fixture(params=["bubblewrap", "namespaces", "landlock"])
def level(request) -> Level:
    """Return each sandbox in turn."""
    return request.param


@pytest.fixture(params=["bubblewrap", "namespaces", "landlock", "none"])
def any_level(request) -> Level:
    """Return each sandbox in turn, and none."""
    return request.param


@pytest.fixture(params=["bubblewrap", "namespaces"])
def copying(request) -> Level:
    """Return each sandbox in which commands work on a copy."""
    return request.param


@pytest.fixture
async def open_shell():
    """Return a function that opens shells, which are closed at the end."""
    opened: list[Shell] = []

    async def make(workspace: Path, level: Level, **settings) -> Shell:
        kept = {key: settings.pop(key) for key in ("closed", "env", "copies") if key in settings}
        shell = Shell(workspace, ShellSettings(sandbox=level, **settings), **kept)
        opened.append(shell)
        if level != "none":
            await require(shell, level)
        return shell

    yield make
    for shell in opened:
        await shell.aclose()
