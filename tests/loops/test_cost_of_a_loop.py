"""Cost of a loop, in counts that are the same on every machine."""

from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from duckflow.llm import streams
from duckflow.store.database.database import Database
from fakes.engine import action, decision, engine
from fakes.model_server import ModelServer
from fakes.plays import play
from fakes.sent_prompts import cost, make_project, send, small_looks


def looks(count: int) -> list[str]:
    """Decisions that read a file each, and a last one that is done."""
    reads = [decision("", action("read_file", path=f"src/part_{number:02}.py")) for number in range(count)]
    return [*reads, decision("That is all.")]


@pytest.fixture
def writes(monkeypatch) -> Counter[bool]:
    """Transactions that were written: True for those that waited for the disk."""
    counted: Counter[bool] = Counter()
    real = Database.write

    @contextmanager
    def write(self: Database, *, through: bool = True):
        counted[through] += 1
        with real(self, through=through) as connection:
            yield connection

    monkeypatch.setattr(Database, "write", write)
    return counted


async def test_a_loop_waits_twice_for_the_disk_and_writes_five_times_at_most(
    tmp_path: Path, writes: Counter[bool]
):
    """Once before the action, because it must be known after a crash that it began, and once after it."""
    spent: list[Counter[bool]] = []
    for loops in (4, 14):
        before = writes.copy()
        folder = make_project(tmp_path / str(loops))
        async with engine(folder, *looks(loops)) as duck:
            await duck.app.chat.say("Look at the parts")
        spent.append(writes - before)
    more = spent[1] - spent[0]
    assert more[True] <= 2 * 10
    assert more.total() <= 5 * 10


async def test_all_calls_of_a_session_use_one_connection(tmp_path: Path, monkeypatch):
    """One more asks what the model is, and another what is asked beside decisions, at the same time."""
    monkeypatch.setattr(streams, "END_PATIENCE_S", 60.0)
    folder = make_project(tmp_path / "project")
    with ModelServer(play(*looks(8))) as server:
        server.keeps_open = True
        async with engine(folder, server=server) as duck:
            await duck.app.chat.say("Look at the parts")
        assert len(server.requests) > 8
        assert len(server.connections) <= 3


async def test_F5_twenty_one_calls_stay_cheap(tmp_path: Path):
    """New characters, and a tenth of those that repeat."""
    folder = make_project(tmp_path / "project")
    (folder / "AGENTS.md").unlink()
    assert cost(await send(folder, ["Which part returns 7?"], small_looks(21))) <= 37_000
