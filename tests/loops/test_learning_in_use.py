"""Earlier requests of a kind change the limit of the next one (I11)."""

from pathlib import Path

from duckflow.domain.events import LimitSet
from fakes.engine import action, decision, engine


async def test_I11_after_eight_short_tasks_the_ninth_is_given_less(folder: Path):
    short = [
        decision(
            "There.",
            action("write_file", path=f"{n}.txt", content="x\n"),
            task_profile="file_operation",
            next_step="done",
        )
        for n in range(9)
    ]
    async with engine(folder, *short) as duck:
        for n in range(9):
            assert await duck.app.chat.say(f"write {n}") == "done"
        bases = [one.limit.base for one in duck.of(LimitSet)]
        assert bases == [8] * 8 + [6]
        assert duck.of(LimitSet)[-1].limit.learned_from == 8
    async with engine(folder, short[0], learning={"enabled": False}) as duck:
        await duck.app.chat.say("write 0")
        assert [one.limit.base for one in duck.of(LimitSet)] == [8]
