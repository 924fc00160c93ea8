"""H3: the events of the real engine, with its real file tools, are read as they are meant."""

from duckflow.domain.events import DecisionMade
from duckflow.domain.pacing.limits import LoopTrace
from duckflow.pacemaker.repetition import find_signs
from duckflow.pacemaker.trace import trace_loop
from fakes.engine import Watched, action, decision, engine


def traced(duck: Watched) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Signs and gains of each loop."""
    starts = [place for place, event in enumerate(duck.events) if isinstance(event, DecisionMade)]
    history: tuple[LoopTrace, ...] = ()
    found = []
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(duck.events)], strict=True):
        trace = trace_loop(history, duck.events[start:end])
        found.append((find_signs(history, trace), trace.gains))
        history = (*history, trace)
    return found


async def test_H3_reading_again_is_found_although_the_second_answer_only_points_to_the_first(tmp_path):
    (tmp_path / "a.py").write_text("print()\n")
    looks = [decision("", action("read_file", path=path)) for path in ("a.py", "./a.py", "a.py")]
    async with engine(tmp_path, *looks, decision("done")) as duck:
        await duck.app.chat.say("look")
    assert traced(duck) == [
        ((), ("new_evidence",)),
        (("repeated",), ()),
        (("repeated", "seen"), ()),
        ((), ()),
    ]


async def test_H3_writing_the_same_again_is_found_although_the_tool_says_something_else(tmp_path):
    writes = [decision("", action("write_file", path="a.py", content="x\n")) for _ in range(2)]
    async with engine(tmp_path, *writes, decision("done")) as duck:
        await duck.app.chat.say("write")
    assert traced(duck) == [((), ("new_content",)), (("repeated",), ()), ((), ())]


async def test_H3_doing_and_undoing_is_found(tmp_path):
    (tmp_path / "a.py").write_text("one\n")
    there = action("edit_file", path="a.py", edits=[{"find": "one", "replace": "two"}])
    back = action("edit_file", path="a.py", edits=[{"find": "two", "replace": "one"}])
    look = action("read_file", path="a.py")
    turns = [decision("", one) for one in (look, there, back, there, back)]
    async with engine(tmp_path, *turns, decision("done")) as duck:
        await duck.app.chat.say("edit")
    signs = [found for found, _ in traced(duck)]
    assert signs == [(), (), (), ("back_and_forth",), ("alternating", "back_and_forth"), ()]


async def test_H3_batch_work_raises_no_alarm(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text("same\n")
    turns = [
        decision("", one)
        for name in "abc"
        for one in (
            action("read_file", path=name),
            action("edit_file", path=name, edits=[{"find": "same", "replace": "other"}]),
            action("read_file", path=name),
        )
    ]
    async with engine(tmp_path, *turns, decision("done")) as duck:
        await duck.app.chat.say("change all")
    found = traced(duck)
    assert {signs for signs, _ in found} == {()}
    assert all(gains for _, gains in found[:-1])


async def test_H3_a_file_someone_else_changed_makes_the_same_look_a_new_one(tmp_path):
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "b.py").write_text("b\n")
    look = decision("", action("search", pattern="zzz"))
    async with engine(tmp_path, decision("", action("read_file", path="a.py")), look, look, look) as duck:
        real = duck.app.session.record

        def meddle(*events):
            real(*events)
            if any(isinstance(event, DecisionMade) and event.loop == 2 for event in events):
                (tmp_path / "a.py").write_text("meddled\n")

        duck.app.session.record = meddle
        await duck.app.chat.say("look")
    signs = [found for found, _ in traced(duck)]
    assert signs == [(), (), (), ("repeated",)]
