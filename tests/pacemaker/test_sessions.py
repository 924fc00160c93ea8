"""H3, H5: whole sessions with the real tools. Honest work raises no alarm, real stagnation is caught soon."""

from pathlib import Path
from typing import Any

from duckflow.domain.events import ConsultationRequested, DecisionMade, VitalsChanged
from duckflow.domain.questions.approval import AnswerApproval
from fakes.engine import Watched, action, decision, engine
from fakes.rows import every_row

WITHIN = 6


def read(path: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    part = {"start": start, "end": end} if start else {}
    return action("read_file", path=path, **part)


def write(path: str, content: str) -> dict[str, Any]:
    return action("write_file", path=path, content=content)


def edit(path: str, find: str, put: str) -> dict[str, Any]:
    return action("edit_file", path=path, edits=[{"find": find, "replace": put}])


def run(command: str) -> dict[str, Any]:
    return {"operation": "shell.run", "args": {"command": command}}


def search(pattern: str, path: str = ".") -> dict[str, Any]:
    return action("search", pattern=pattern, path=path)


CHECK = run("sh check.sh")
LETTERS = "abcdefgh"

HONEST: dict[str, list[Any]] = {
    "the same edit in many files": [edit(f"{name}.py", "x = 1", "x = 2") for name in LETTERS],
    "a look and an edit, file by file": [
        one for name in "abcd" for one in (read(f"{name}.py"), edit(f"{name}.py", "x = 1", "x = 3"))
    ],
    "many edits of one file": [
        edit("long.txt", f"line {n}\n", f"Line {n}\n") for n in (11, 22, 33, 44, 55, 66)
    ],
    "paging through a file": [read("long.txt", at, at + 99) for at in range(1, 800, 100)],
    "paging with overlap": [read("long.txt", at, at + 119) for at in range(1, 700, 100)],
    "paging backwards": [read("long.txt", at, at + 99) for at in range(601, 0, -100)],
    "long reads of several files": [read(path) for path in ("long.txt", "other.txt", "a.py", "b.py", "c.py")],
    "a long read, one more look at a part, an edit": [
        one
        for n in (10, 300, 600)
        for one in (read("long.txt", n, n + 20), edit("long.txt", f"line {n}\n", f"LINE {n}\n"))
    ],
    "the whole, then a part of it, then work": [
        read("long.txt"),
        read("long.txt", 90, 110),
        write("n.txt", "x\n"),
    ],
    "a test after each edit, always with the same result": [
        one for n in range(4) for one in (edit("a.py", f"x = {n + 1}", f"x = {n + 2}"), CHECK)
    ],
    "a test, a look, an edit, a test": [
        CHECK,
        read("a.py"),
        edit("a.py", "x = 1", "x = 5"),
        CHECK,
        read("b.py"),
    ],
    "tried and taken back, then tried otherwise and taken back": [
        edit("a.py", "x = 1", "x = 7"),
        CHECK,
        edit("a.py", "x = 7", "x = 1"),
        edit("a.py", "x = 1", "x = 8"),
        CHECK,
        edit("a.py", "x = 8", "x = 1"),
    ],
    "back to the better of two versions": [
        write("n.txt", "one\n"),
        run("cat n.txt"),
        write("n.txt", "two\n"),
        run("cat n.txt"),
        write("n.txt", "one\n"),
    ],
    "several searches, some of which find nothing": [
        search(one) for one in ("x = 1", "nowhere", "neither", "line 5")
    ],
    "several new files with the same content": [write(f"new/{name}.txt", "same\n") for name in LETTERS],
    "a look after each edit": [
        one for n in (1, 2, 3) for one in (edit("a.py", f"x = {n}", f"x = {n + 1}"), read("a.py"))
    ],
    "from the list to the file": [
        action("list_files", path="."),
        search("x = 1"),
        read("a.py"),
        edit("a.py", "x = 1", "x = 4"),
        read("a.py"),
        CHECK,
    ],
    "an edit that fails, a look, an edit that fits": [
        edit("a.py", "y = 1", "y = 2"),
        read("a.py"),
        edit("a.py", "x = 1", "x = 2"),
        CHECK,
    ],
    "commands that say nothing": [run(f"test -e {name}.py") for name in "abcdef"],
    "files that are moved, one after the other": [
        action("move_file", path=f"{name}.py", to=f"moved/{name}.py") for name in "abcdef"
    ],
}

STAGNATION: dict[str, list[Any]] = {
    "the same file": [read("a.py")],
    "the same lines under other arguments": [read("long.txt", n, 200 - n) for n in range(1, 9)],
    "a part, the whole, a part of what was seen": [
        read("long.txt"),
        *(read("long.txt", n, n + 30) for n in range(100, 800, 100)),
    ],
    "two files in turn": [read("a.py"), read("b.py")],
    "the same search": [search("x = 1")],
    "the same command": [CHECK],
    "the same failure": [edit("a.py", "not there", "x")],
    "a file written back and forth": [write("a.py", "x = 2\n"), write("a.py", "x = 1\n")],
    "back and forth by edits and writes": [
        edit("a.py", "x = 1", "x = 2"),
        write("a.py", "x = 1\n"),
        write("a.py", "x = 2\n"),
        edit("a.py", "x = 2", "x = 1"),
        edit("a.py", "= 1", "= 2"),
        edit("a.py", "= 2", "= 1"),
    ],
    "announcements": [],
}


def pond(tmp_path: Path) -> Path:
    """A folder with short and long files, and a test that fails."""
    for name in LETTERS:
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    for name in ("long.txt", "other.txt"):
        (tmp_path / name).write_text("".join(f"line {n}\n" for n in range(1, 801)))
    (tmp_path / "check.sh").write_text("echo 1 failed, 4 passed\n")
    return tmp_path


async def work(duck: Watched) -> str:
    """Work on the request, with a yes to whatever is asked."""
    outcome = await duck.app.chat.say("work")
    while outcome == "awaiting_approval":
        outcome = await duck.app.chat.answer(AnswerApproval(yes=True, always=True))
    return outcome


@every_row("steps", HONEST.values(), ids=HONEST.keys())
async def test_H3_honest_work_raises_no_alarm(steps, tmp_path):
    script = [decision("", one) for one in steps]
    async with engine(pond(tmp_path), *script, decision("done"), max_loops=20) as duck:
        await work(duck)
    signs = [event.signs for event in duck.of(VitalsChanged) if event.cause == "loop"]
    assert len(signs) >= len(steps), "the work was not interrupted"
    assert not any(signs), signs
    assert not duck.of(ConsultationRequested)
    assert not [event for event in duck.of(VitalsChanged) if event.cause == "replan"]


@every_row("steps", STAGNATION.values(), ids=STAGNATION.keys())
async def test_H3_real_stagnation_is_caught_within_six_loops(steps, tmp_path):
    turns = [decision("", one) for one in steps] or [decision("I will do it now.", next_step="continue")]
    script = [turns[place % len(turns)] for place in range(20)]
    async with engine(pond(tmp_path), *script, max_loops=20) as duck:
        assert await work(duck) == "consultation"
    assert len(duck.of(DecisionMade)) <= WITHIN
    (asked,) = duck.of(ConsultationRequested)
    assert asked.kind in (("confusion",) if not steps else ("stagnation", "oracle"))
