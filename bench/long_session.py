"""Compares loops early and late in a long session, in time and memory.

    .venv/bin/python bench/long_session.py [--loops N]

One process handles many requests of ten loops each that write files, with a model that answers at once from
memory. Sessions of each length are prepared first; then they take turns, so that other load on the machine
affects all of them.
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
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.config.loading import LoadedSettings
from duckflow.config.settings import Settings
from duckflow.domain.model import ModelPiece, ModelRequest, ModelTraits, StreamEnd, TextPiece
from duckflow.llm.default_model import ModelChoice

A_REQUEST = 10
ROUNDS = 15


class Memory:
    """Model in memory that writes one file after the other and finishes with every tenth decision."""

    traits = ModelTraits(name="memory", window=32_768)

    def __init__(self) -> None:
        self.calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Yield the next answer. Side questions get a favourable one that cites the newest evidence."""
        if request.output != "Decision":
            newest = re.findall(r"\[(e\d+)\]", request.messages[-1].text)[-1:]
            scored = [{"requirement": "1", "score": 1.0, "evidence": newest}]
            wanted = {"requirements": [{"requirement": "files"}]}
            praise = wanted if request.output == "RequirementList" else {"requirement_scores": scored}
            yield TextPiece(text=json.dumps(praise))
            yield StreamEnd()
            return
        self.calls += 1
        ends = self.calls % A_REQUEST == 0
        args = {"path": f"file{self.calls % 7}.txt", "content": f"{self.calls}\n" * 20}
        acts = [] if ends else [{"operation": "file_ops.write_file", "args": args}]
        body = {"next_step": "done" if ends else "continue", "reply": "Next.", "actions": acts}
        yield TextPiece(text=json.dumps(body))
        yield StreamEnd()

    async def aclose(self) -> None:
        """Do nothing, because there is no connection."""


class LongSession:
    """A session with a separate folder and database."""

    def __init__(self, place: Path) -> None:
        for name in ("work", "state"):
            (place / name).mkdir(parents=True)
        os.environ["DUCKFLOW_STATE_DIR"] = str(place / "state")
        settings = Settings.model_validate({"mode": "edits", "llm": {"model": "scripted:none"}})
        choice = ModelChoice(name="scripted:none", reason_key="llm.chosen_by_setting")
        self._app = App(Opening(LoadedSettings(settings=settings, sources={}), place / "work"), choice, {})
        model = Memory()

        async def opened(_name: str) -> Memory:
            return model

        self._app.tiers._open = opened
        self._app.begin()

    async def request(self) -> float:
        """Send one request and return milliseconds per loop."""
        start = time.perf_counter()
        outcome = await self._app.chat.say("go on")
        assert outcome == "done", outcome
        return (time.perf_counter() - start) / A_REQUEST * 1000

    async def close(self) -> None:
        """Close the session."""
        await self._app.aclose()


async def times(loops: Sequence[int]) -> dict[int, list[float]]:
    """Measure milliseconds per loop in sessions of these lengths, in turns."""
    with tempfile.TemporaryDirectory() as place:
        sessions = {count: LongSession(Path(place) / str(count)) for count in loops}
        for count, session in sessions.items():
            for _ in range(count // A_REQUEST - 1):
                await session.request()
        taken: dict[int, list[float]] = {count: [] for count in loops}
        for number in range(ROUNDS):
            # The shortest session is recreated each time, because it would grow most in relation to its
            # length.
            await sessions[loops[0]].close()
            sessions[loops[0]] = LongSession(Path(place) / f"short_{number}")
            for _ in range(loops[0] // A_REQUEST - 1):
                await sessions[loops[0]].request()
            for count, session in sessions.items():
                taken[count].append(await session.request())
        for session in sessions.values():
            await session.close()
    return taken


async def kilobytes(loops: int) -> list[float]:
    """Return the memory in use after each request of one session, in kilobytes."""
    with tempfile.TemporaryDirectory() as place:
        session, rows = LongSession(Path(place)), list[float]()
        tracemalloc.start()
        for _ in range(loops // A_REQUEST):
            await session.request()
            gc.collect()
            rows.append(tracemalloc.get_traced_memory()[0] / 1024)
        await session.close()
    return rows


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--loops", type=int, default=2000)
    loops = parser.parse_args().loops
    taken = {count: statistics.median(one) for count, one in asyncio.run(times((20, 200, loops))).items()}
    for count, took in taken.items():
        print(f"a loop near loop {count}: {took:6.1f} ms   ({took / taken[20]:.2f} times, bound 1.1)")
    sizes = asyncio.run(kilobytes(loops))
    grown = (sizes[-1] - sizes[len(sizes) // 2]) / (loops / 2)
    print(f"memory held near loop {loops}: {sizes[-1]:.0f} kB, growing by {grown:.2f} kB a loop")


if __name__ == "__main__":
    main()
