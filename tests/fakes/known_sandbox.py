"""Remembers which sandbox works on a disk: trying it in every folder takes longer than most tests."""

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from duckflow.config.settings import ShellSettings
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.levels import Sandbox
from fakes.warm_program import remember_sandboxes

_found: dict[str, Sandbox] = {}


def remember_here() -> None:
    """Remember for all tests of this process."""
    remember_sandboxes(_found)


def known_sandboxes(place: Path) -> dict[str, dict[str, object]]:
    """Return all that is known, as data for another process, at least the sandbox for the disk of `place`."""
    if not any(known.startswith(f"auto {place.stat().st_dev} ") for known in _found):
        with ThreadPoolExecutor(1) as thread:  # the test may already run an event loop
            thread.submit(asyncio.run, _find(place)).result()
    return {known: sandbox.model_dump(mode="json") for known, sandbox in _found.items()}


async def _find(place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place) as base:
        folder = Path(base).resolve() / "work"
        folder.mkdir()
        shell = Shell(folder, ShellSettings(), copies=folder.parent / "copies")
        try:
            await shell.sandbox()
        finally:
            await shell.aclose()
