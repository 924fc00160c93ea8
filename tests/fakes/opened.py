"""An open session with its host, on a scripted model."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from duckflow.app.opening import Opening
from duckflow.config.loading import load
from duckflow.session.channel import UpdateQueue
from duckflow.session.host import SessionHost
from fakes.engine import write_script


@asynccontextmanager
async def opened(
    folder: Path, *answers: str | dict[str, Any], driven: bool = False, mode: str = "ask"
) -> AsyncGenerator[tuple[SessionHost, UpdateQueue]]:
    """The host of a session in this folder, and its updates."""
    script = write_script(folder.parent / "script.jsonl", answers)
    quiet = {"checks.after_edit": False, "checks.before_verdict": False}
    loaded = load(folder, trusted=False, flags={"llm.model": f"scripted:{script}", "mode": mode, **quiet})
    updates = UpdateQueue()
    host = await SessionHost.open(Opening(loaded, folder, attended=True), updates, driven=driven)
    try:
        yield host, updates
    finally:
        await host.aclose()
