"""Ctrl-C at any await of a turn: no half-written file, nothing lost, and the session goes on."""

import asyncio
import hashlib
from collections.abc import Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duckflow.domain.events import ActionFinished, ActionStarted, RequestFinished, Undone
from duckflow.domain.files.changes import FileChange
from duckflow.loops.session import Session
from fakes.engine import action, decision, engine
from fakes.rows import every_row

TURN = (
    decision(
        "First.",
        action("write_file", path="a.txt", content="new a\n"),
        action("edit_file", path="b.txt", edits=[{"find": "old", "replace": "new"}]),
        action("search", pattern="new"),
        step="EXECUTION",
    ),
    decision("", action("move_file", path="c.txt", to="sub/d.txt"), action("read_file", path="a.txt")),
    decision("Which one now?", next_step="pending_user"),
)


class Stepped:
    """A coroutine that asks for its own cancelling when it waits for the n-th time."""

    def __init__(self, inner: Coroutine[Any, Any, Any], at: int) -> None:
        self._inner, self._at = inner, at
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._inner.__await__()
        go_on = partial(steps.send, None)
        while True:
            try:
                waited_for = go_on()
            except StopIteration as end:
                return end.value
            self.waits += 1
            if self.waits == self._at:
                asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
            try:
                go_on = partial(steps.send, (yield waited_for))
            except BaseException as error:
                go_on = partial(steps.throw, error)


def prepare(folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"old {name}\n")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def on_disk(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): sha(one.read_bytes()) for one in folder.rglob("*") if one.is_file()}


def replayed(before: dict[str, str], changes: list[FileChange]) -> dict[str, str]:
    files = dict(before)
    for change in changes:
        assert files.get(change.path) == change.before
        if change.after is None:
            del files[change.path]
        else:
            files[change.path] = change.after
    return files


def recorded_changes(events) -> list[FileChange]:
    return [
        change for event in events if isinstance(event, ActionFinished | Undone) for change in event.changes
    ]


async def turn_cancelled_at(folder: Path, at: int) -> int:
    """Run the turn, cancelled at the n-th wait; how often it waited in all."""
    prepare(folder)
    before = on_disk(folder)
    async with engine(folder, *TURN) as duck:
        stepped = Stepped(duck.app.chat.say("go"), at)

        async def run() -> None:
            await stepped

        task = asyncio.create_task(run())
        await asyncio.wait([task])
        cancelled = task.cancelled()
        if not cancelled:
            task.result()
        assert on_disk(folder) == replayed(before, recorded_changes(duck.events))
        started = {event.action_id for event in duck.of(ActionStarted)}
        ended = {event.action_id for event in duck.of(ActionFinished)}
        assert started == ended, "an action was begun and never ended"
        assert duck.state.running is None
        if cancelled and duck.state.request is not None:
            assert duck.of(RequestFinished)[-1].outcome == "interrupted"
        assert Session(duck.app.log, duck.state.session_id).state == duck.state
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
        assert await duck.app.chat.say("and now?") is not None
        await duck.app.undoing.undo(10)
        if not duck.of(Undone) or not duck.of(Undone)[-1].left:
            assert on_disk(folder) == before
    return stepped.waits


@pytest.mark.long
@every_row("share", range(4))
async def test_a_turn_cancelled_at_any_of_its_awaits_leaves_everything_whole(tmp_path: Path, share: int):
    (tmp_path / "whole").mkdir()
    waits = await turn_cancelled_at(tmp_path / "whole", 0)
    assert waits > 20
    for at in range(1 + share, waits + 1, 4):
        folder = tmp_path / f"at{at}"
        folder.mkdir()
        await turn_cancelled_at(folder, at)
