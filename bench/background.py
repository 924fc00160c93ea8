"""Measures whether the chat stays quick during background work: one question while a list runs for a minute.

    .venv/bin/python bench/background.py

The model is scripted. The last call of the background list takes 60 seconds and is cancelled after the chat's
answer.
"""

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.config.loading import LoadedSettings
from duckflow.config.settings import Settings
from duckflow.llm.default_model import ModelChoice

TASKS = [
    {"operation": "file_ops.write_file", "args": {"path": f"{n}.txt", "content": "x\n"}} for n in range(20)
]
START = {
    "next_step": "defer",
    "reply": "I begin.",
    "actions": [{"operation": "task_loop.run", "args": {"task_list": TASKS}}],
}
SCRIPT = (
    {"for": "Decision", "text": json.dumps(START)},
    {"for": "Decision", "text": json.dumps({"next_step": "defer", "reply": "Paris."})},
    {"for": "TaskReport", "text": "{}", "delay_s": 60},
)


async def measure(folder: Path) -> float:
    """Return the seconds until the chat has answered."""
    script = folder.parent / "script.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in SCRIPT))
    settings = Settings.model_validate({"mode": "edits", "llm": {"model": f"scripted:{script}"}})
    choice = ModelChoice(name=f"scripted:{script}", reason_key="llm.chosen_by_setting")
    app = App(Opening(LoadedSettings(settings=settings, sources={}), folder), choice, {})
    app.begin()
    try:
        await app.chat.say("write twenty files")
        start = time.perf_counter()
        await app.chat.say("What is the capital of France?")
        took = time.perf_counter() - start
        assert app.session.state.background_runs
        assert app.session.state.reply == "Paris."
    finally:
        await app.aclose()
    return took


def main() -> None:
    """Print the measured time."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["DUCKFLOW_STATE_DIR"] = f"{home}/state"
        folder = Path(home) / "work"
        folder.mkdir()
        took = asyncio.run(measure(folder))
    print(f"a question while the background works: {took * 1000:.0f} ms   (bound 1000 ms)")


if __name__ == "__main__":
    main()
