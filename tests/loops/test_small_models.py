"""Guidance for small models: the files that a message names, and the limit on reading."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from duckflow.config.settings import CheckSettings, ShellSettings
from duckflow.domain.state import AgentState, CommandRun, Request, TranscriptEntry
from duckflow.domain.work.objective import TaskObjective
from duckflow.evaluation.check_copies import OWN_PROGRAMS, CheckCopies
from duckflow.evaluation.checks import Checks
from duckflow.loops.thinking.small_models import WorkspaceLook, names_file
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.shell import Shell
from fakes.rows import every_row

FILES = ("calc.py", "src/app.py", "README.md", "a.c", "データ.csv")


@asynccontextmanager
async def looking_at(folder: Path) -> AsyncIterator[WorkspaceLook]:
    open_shell = partial(Shell, settings=ShellSettings(), programs=OWN_PROGRAMS)
    shell = open_shell(folder)
    checks = Checks(CheckCopies(Workspace(folder), shell, open_shell), CheckSettings(), shutil.which)
    try:
        yield WorkspaceLook(Workspace(folder), checks)
    finally:
        await checks.aclose()
        await shell.aclose()


def named(text: str) -> list[str]:
    return [path for path in FILES if names_file(text, path)]


@every_row(
    ("text", "paths"),
    [
        ("What does calc.py do?", ["calc.py"]),
        ("calc.pyは何をしますか", ["calc.py"]),
        ("look at src/app.py.", ["src/app.py"]),
        ("app.py is broken", ["src/app.py"]),
        ("データ.csv を読んで", ["データ.csv"]),
        ("README.md と calc.py", ["calc.py", "README.md"]),
        ("supercalc.py", []),
        ("calc.pyc", []),
        ("lib/calc.py", []),
        ("data.c", []),
        ("nothing here", []),
    ],
)
def test_a_file_counts_as_named_by_its_path_or_its_whole_name(text: str, paths: list[str]):
    assert named(text) == paths


def _state(*entries: TranscriptEntry) -> AgentState:
    return AgentState(
        request=Request(request_id="r", text="?"),
        transcript=(TranscriptEntry(role="user", text="?", said=True), *entries),
    )


def _read(path: str) -> TranscriptEntry:
    return TranscriptEntry(
        role="user", text=path, evidence_id="e1", operation="file_ops.read_file", path=path
    )


def _said() -> TranscriptEntry:
    return TranscriptEntry(role="assistant", text="I look.")


async def test_looking_is_offered_a_few_times_and_never_for_what_was_seen(tmp_path: Path):
    for name in "abcde":
        (tmp_path / name).write_text(name)
    async with looking_at(tmp_path) as look:
        first = await look.choices(_state())
        assert (first.unseen, first.may_search) == (tuple("abcde"), True)
        second = await look.choices(_state(_said(), _read("a")))
        assert (second.unseen, second.may_search) == (tuple("bcde"), False)
        third = await look.choices(_state(_said(), _read("a"), _said(), _read("b"), _said(), _read("c")))
        assert third.unseen == ()
        assert third.hidden == tuple("de")


async def test_J11_nothing_is_deleted_to_repair_what_was_written_or_moved(tmp_path: Path):
    (tmp_path / "a").write_text("a")
    moved = TranscriptEntry(role="user", text="no", evidence_id="e1", operation="file_ops.move_file")
    async with looking_at(tmp_path) as look:
        assert (await look.choices(_state(_read("a")))).may_delete
        assert not (await look.choices(_state(_said(), moved))).may_delete
        next_request = TranscriptEntry(role="user", text="Now delete it", said=True)
        assert (await look.choices(_state(_said(), moved, next_request))).may_delete


async def test_J11_tests_that_fail_now_are_known(tmp_path: Path):
    (tmp_path / "stats.py").write_text("def mean(v):\n    return sum(v)\n")
    test = tmp_path / "test_stats.py"
    head = "from stats import mean\n\ndef test_mean():\n    assert mean([1, 2, 3]) =="
    async with looking_at(tmp_path) as look:
        for expected, failing in ((6, ()), (2, ("test_stats.py",))):
            test.write_text(f"{head} {expected}\n")
            assert await look.failing_tests(("stats.py", "test_stats.py")) == frozenset(failing)
        assert await look.failing_tests(("test_stats.py",)) == frozenset()


async def test_J11_small_talk_is_told_apart(tmp_path: Path):
    talk = {
        "hi there": "hello",
        "thanks a lot": "welcome",
        "ok bye": "bye",
        "さようなら": "bye",
        "ok": "next",
    }
    async with looking_at(tmp_path) as look:
        for said, kind in talk.items():
            entry = TranscriptEntry(role="user", text=said, said=True)
            state = AgentState(request=Request(request_id="r", text=said), transcript=(entry,))
            choices = await look.choices(state)
            assert (choices.plain, choices.talk) == ("talk", kind), said


async def test_J11_tests_whose_program_is_missing_are_run_all_the_same(tmp_path: Path):
    """The real user had no pytest, was told to install it, and read below that the tests had passed."""
    (tmp_path / "stats.py").write_text("def mean(v):\n    return sum(v) / len(v)\n")
    test = "from stats import mean\n\ndef test_mean():\n    assert mean([1, 3]) =="
    (tmp_path / "test_stats.py").write_text(f"{test} 2\n")
    (tmp_path / "test_wrong.py").write_text(f"{test} 3\n")
    missing = TranscriptEntry(
        role="user",
        text="$ python3 -m pytest -q\n/usr/bin/python3: No module named pytest",
        evidence_id="e1",
        operation="shell.run",
    )
    ran = CommandRun(command="python3 -m pytest -q", exit_code=1, evidence_id="e1")
    asked = TranscriptEntry(role="user", text="run the tests", said=True)
    state = AgentState(
        request=Request(request_id="r", text="run the tests", commands=(ran,)), transcript=(asked, missing)
    )
    async with looking_at(tmp_path) as look:
        choices = await look.choices(state)
    assert [line[:18] for line in choices.own_runs] == ["- ✓ test_stats.py", "- ✗ test_wrong.py:"]


async def test_J11_a_test_with_a_name_that_is_nowhere_is_no_draft_to_keep(tmp_path: Path):
    (tmp_path / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    drafts = (("", 3), ("from calc import add\n", 3), ("from calc import add\n", 4))
    async with looking_at(tmp_path) as look:
        checked = [
            await look.check(
                _state(), "test_calc.py", f"{head}\ndef test_add():\n    assert add(1, 2) == {result}\n"
            )
            for head, result in drafts
        ]
    assert [bool(one.failed) for one in checked] == [True, False, False]
    assert checked[2].doubts  # a test may be written before its code


async def test_nothing_more_to_look_at_when_the_named_files_were_read(tmp_path: Path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    async with looking_at(tmp_path) as look:
        choices = await look.choices(_state(_read("a")))
    assert (choices.unseen, choices.may_search) == ((), False)


async def test_a_file_that_can_not_be_shown_has_no_content(tmp_path: Path):
    (tmp_path / "image").write_bytes(b"\x00\x01")
    async with looking_at(tmp_path) as look:
        assert await look.content("image") is None
        assert await look.content("missing") is None
        assert await look.content("../outside") is None


STORY = "Your friend keeps a list of ducks and wonders how many there are. Do you know? " * 5


async def test_J11_a_long_description_that_names_a_new_file_is_no_question(tmp_path: Path):
    """F: a story may hold questions; what it asks for at the end counts."""
    (tmp_path / "there.py").write_text("")
    async with looking_at(tmp_path) as look:
        wanted = {
            f"{STORY}Write solution.py with `count(ducks)`.": "change",
            f"{STORY}solution.py を書いて": "change",
            f"{STORY}How would you write solution.py?": None,
            f"{STORY}Say what there.py does.": None,
            f"{STORY}Explain os.path to me.": None,
            "What is Node.js": None,
            "Git でコミットを取り消すには?": "answer",
            "クロージャとは？": "answer",
            "README にはライセンスを書いて": None,
        }
        told = {text: (await look.choices(_asked(text))).wish for text in wanted}
        assert told == wanted


def _asked(text: str) -> AgentState:
    return AgentState(request=Request(request_id="r", text=text))


async def test_J11_a_draft_is_checked_by_running_it_in_a_copy(tmp_path: Path):
    """Examples of the request and the verifying command decide; nothing is written to the folder."""
    request = Request(request_id="r", text="x", objective=TaskObjective(request="add(2, 3) == 5 in a.py"))
    state = AgentState(request=request)
    good, bad = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
    verified = state.model_copy(update={"verify": "python3 -c 'import a; assert a.add(1, 1) == 2'"})
    async with looking_at(tmp_path) as look:
        assert (await look.check(state, "a.py", "def")).failed == 1
        assert (await look.check(state, "a.py", good)).failed == 0
        better, worse = [await look.check(verified, "a.py", draft) for draft in (good, bad)]
    assert (better.failed, better.passed > 0, worse.failed > 0) == (0, True, True)
    assert better.rank > worse.rank
    assert list(tmp_path.iterdir()) == []


async def test_J11_what_the_user_asks_about_is_looked_at_first(tmp_path: Path):
    """Asked what a project is for, the real model guessed. It named a wrong file where a name is defined."""
    (tmp_path / "README.md").write_text("# Counts\n")
    (tmp_path / "kana.py").write_text("x = 1\n" * 20 + "def hira2kata(text):\n    return text\n")
    (tmp_path / "big.py").write_text("y = 1\n" * 5000)
    async with looking_at(tmp_path) as look:

        async def read(said: str) -> list[dict[str, object]]:
            return [dict(one.args) for one in await look.look_first(AgentState(), said)]

        assert (await read("What is this project?"))[0]["path"] == "README.md"
        assert await read("hira2kata はどこで定義されていますか？") == [
            {"path": "kana.py", "start": 21, "end": 71}
        ]
        (big,) = await read("explain big.py")
        assert int(str(big["end"])) < 1500, "a small model reads a few hundred words in a second at best"
        assert await read("hi") == await read("run kana.py") == []


async def test_J11_the_file_that_the_words_name_is_the_one_to_write(tmp_path: Path):
    for name in ("guess.py", "storage.py", "README.md"):
        (tmp_path / name).write_text("x = 1\n")
    async with looking_at(tmp_path) as look:

        async def writes(said: str) -> str:
            entry = TranscriptEntry(role="user", text=said, said=True)
            state = AgentState(request=Request(request_id="r", text=said), transcript=(entry,))
            return (await look.choices(state)).writes

        assert await writes("add type hints to storage.py") == "storage.py"
        assert await writes("write a test for guess.py") == "test_guess.py"
        assert await writes("create hello.py that prints hello") == "hello.py"
        assert await writes("move storage.py to store.py") == ""
        assert await writes("make it faster") == ""
