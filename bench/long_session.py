"""Whether a long session costs more than a short one: time and memory a loop, at loop 20 and at loop 2,000.

    .venv/bin/python bench/long_session.py [--loops N]

One process, many requests of ten loops each, on a model that answers at once from memory.
"""

import argparse
import asyncio
import gc
import json
import os
import re
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

from duckflow.app.build import build
from duckflow.config.settings import Settings
from duckflow.domain.model import Finished, ModelPiece, ModelRequest, ModelTraits, TextPiece
from duckflow.llm.default_model import ModelChoice
from duckflow.llm.tiers import Tiers

A_REQUEST = 10


class Memory:
    """A model that writes one file after the other and is done after ten decisions."""

    traits = ModelTraits(name="memory", window=32_768)

    def __init__(self) -> None:
        self.calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Say the next thing; what is asked for beside decisions is praised, by the newest evidence."""
        if request.output != "Decision":
            newest = re.findall(r"\[(e\d+)\]", request.messages[-1].text)[-1:]
            scored = [{"requirement": "1", "score": 1.0, "evidence": newest}]
            wanted = {"requirements": [{"requirement": "files"}]}
            praise = wanted if request.output == "RequirementList" else {"requirement_scores": scored}
            yield TextPiece(text=json.dumps(praise))
            yield Finished()
            return
        self.calls += 1
        ends = self.calls % A_REQUEST == 0
        args = {"path": f"file{self.calls % 7}.txt", "content": f"{self.calls}\n" * 20}
        acts = [] if ends else [{"operation": "file_ops.write_file", "args": args}]
        body = {"next_step": "done" if ends else "continue", "reply": "Next.", "actions": acts}
        yield TextPiece(text=json.dumps(body))
        yield Finished()

    async def aclose(self) -> None:
        """Nothing to close."""


async def measure(loops: int, *, memory: bool) -> list[float]:
    """Milliseconds a loop for each request; or kilobytes held after it."""
    with tempfile.TemporaryDirectory() as folder:
        model = Memory()

        async def opened(_name: str) -> Memory:
            return model

        settings = Settings.model_validate({"mode": "edits", "llm": {"model": "scripted:none"}})
        choice = ModelChoice(name="scripted:none", reason_key="llm.chosen_by_setting")
        app = build(settings, choice, Path(folder), None, {})
        app.tiers._open = opened
        assert isinstance(app.tiers, Tiers)
        app.begin()
        rows = []
        if memory:
            tracemalloc.start()
        for _ in range(loops // A_REQUEST):
            start = time.perf_counter()
            outcome = await app.chat.say("go on")
            took = (time.perf_counter() - start) / A_REQUEST * 1000
            assert outcome == "done", outcome
            rows.append(held() if memory else took)
        await app.aclose()
    return rows


def held() -> float:
    """Kilobytes in use."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--loops", type=int, default=2000)
    loops = parser.parse_args().loops
    with tempfile.TemporaryDirectory() as state:
        os.environ["DUCKFLOW_STATE_DIR"] = state
        times = asyncio.run(measure(loops, memory=False))
        sizes = asyncio.run(measure(loops, memory=True))
    first, last = statistics.median(times[1:6]), statistics.median(times[-5:])
    print(f"time a loop near loop 20:    {first:6.1f} ms")
    print(f"time a loop near loop {loops}:  {last:6.1f} ms   ({last / first:.2f} times, bound 1.5)")
    grown = (sizes[-1] - sizes[len(sizes) // 2]) / (loops / 2)
    print(f"memory held near loop {loops}: {sizes[-1]:.0f} kB, growing by {grown:.2f} kB a loop")


if __name__ == "__main__":
    main()
