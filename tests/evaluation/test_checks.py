"""Checks by running (J10): real tools in a real sandbox, on a copy of a real folder."""

import os
import py_compile
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duckflow.config.settings import CheckSettings, ShellSettings
from duckflow.domain.events import Evaluated
from duckflow.domain.files.programs import find_program
from duckflow.domain.work.checks import CheckResult, checks_line, settled
from duckflow.domain.work.objective import SatisfactionEvaluation
from duckflow.evaluation.check_copies import MOST_FILES, OWN_PROGRAMS, CheckCopies
from duckflow.evaluation.checks import Checks
from duckflow.evaluation.known_tests import KnownRun
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.probe import PROBE, Probe
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.ui.views.goal import evaluation_text
from fakes.rows import every_row


class Asked(Probe):
    """Counts the questions for the sandbox, because nothing is started before one."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    async def find(self, *given: Any) -> Sandbox:
        self.times += 1
        return await super().find(*given)


BOTH = ("copies of the sandbox", "copied files")
one_kind_of_copy = pytest.mark.parametrize("checks_in", BOTH[:1], indirect=True)
"""For tests that start pytest many times, and whose result does not depend on how the files were copied."""


@pytest.fixture(params=BOTH)
def checks_in(request: pytest.FixtureRequest, tmp_path: Path):
    """Checks of a folder as the program runs them, with the sandbox's copies and without."""
    copies = tmp_path / "copies" if request.param == BOTH[0] else None

    @asynccontextmanager
    async def open_checks(folder: Path, probe: Probe = PROBE, **settings: object) -> AsyncIterator[Checks]:
        workspace = Workspace(folder)
        open_shell = partial(Shell, settings=ShellSettings(), programs=OWN_PROGRAMS, probe=probe)
        shell = open_shell(workspace.root, copies=copies)
        checks = Checks(
            CheckCopies(workspace, shell, open_shell),
            CheckSettings.model_validate(settings),
            lambda name: (
                sys.executable if name == "python3" else find_program(name, workspace.root, os.environ)
            ),
        )
        try:
            yield checks
        finally:
            await checks.aclose()
            await shell.aclose()
            workspace.close()

    return open_checks


def states(results: tuple[CheckResult, ...]) -> dict[str, str]:
    """Return the state of each check by its name."""
    return {one.name: one.state for one in results}


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CALC = '''"""Sums."""


def add(a, b):
    """The sum.

    >>> add(1, 1)
    2
    """
    return a + b
'''


async def test_examples_and_tests_are_run_on_a_copy_before_the_verdict(folder: Path, checks_in):
    """J10: examples of the request, doctests, and the test beside the file, without any project file."""
    (folder / "calc.py").write_text(CALC)
    (folder / "test_calc.py").write_text(
        "from calc import add\n\ndef test_add():\n    open('left', 'w').close()\n    assert add(2, 3) == 5\n"
    )
    before = contents(folder)
    async with checks_in(folder) as checks:
        good = await checks.before_verdict("Write add: add(2, 3) -> 5 and add(0, 0) == 0", ["calc.py"])
        (folder / "calc.py").write_text(CALC.replace("a + b", "a - b"))
        bad = await checks.before_verdict("Write add: add(2, 3) -> 5 and add(0, 0) == 0", ["calc.py"])
    wanted = {"add(2, 3) == 5", "add(0, 0) == 0", "doctests of calc.py", "test_calc.py"}
    assert wanted <= set(states(good)), good
    assert {states(good)[name] for name in wanted} == {"passed"}, good
    assert settled(good) is True
    failed = {one.name: one.detail for one in bad if one.state == "failed"}
    assert {"add(2, 3) == 5", "doctests of calc.py", "test_calc.py"} == set(failed), bad
    assert "-1" in failed["add(2, 3) == 5"]
    assert states(bad)["add(0, 0) == 0"] == "passed"
    assert settled(bad) is False
    assert contents(folder) == {**before, "calc.py": CALC.replace("a + b", "a - b").encode()}


async def test_a_candidate_is_checked_without_being_written(folder: Path, checks_in):
    """J10, J11: candidates are compared by their checks; the folder does not change."""
    (folder / "calc.py").write_text("def add(a, b):\n    return 0\n")
    before = contents(folder)
    candidates = {
        "right": "def add(a, b):\n    return a + b\n",
        "wrong": "def add(a, b):\n    return a * b\n",
        "broken": "def add(a, b:\n",
    }
    async with checks_in(folder) as checks:
        found = {
            name: await checks.before_verdict("add(2, 3) -> 5", ["calc.py"], {"calc.py": text})
            for name, text in candidates.items()
        }
    failed = {name: sum(one.state == "failed" for one in results) for name, results in found.items()}
    assert min(failed, key=lambda name: failed[name]) == "right", found
    assert settled(found["right"]) is True
    assert settled(found["wrong"]) is False
    assert settled(found["broken"]) is False
    assert contents(folder) == before


async def test_a_script_prints_what_the_request_says(folder: Path, checks_in):
    """J10: "prints hello" is run; a bare word that may be a description never counts against a script."""
    cases = {
        ("Create say.py that prints hello", "print('hello')\n"): "passed",
        ("Create say.py that prints hello", "print('Hello!')\n"): "passed",
        ("Create say.py that prints hello", "print('helo')\n"): "failed",
        ("Create say.py that prints hello", "x = 1\n"): "failed",
        ("Create say.py that prints primes", "print(2, 3, 5)\n"): "not_run",
        ('Create say.py that prints "good day"', "print('hello')\n"): "failed",
        ("「こんにちは」と表示する say.py を作って", "print('こんにちは')\n"): "passed",
        ("Create say.py that prints hello", "raise ValueError('no')\n"): "failed",
        ("Create say.py that prints hello", "import nothing_like_it\n"): "not_run",
    }
    wrong: list[object] = []
    async with checks_in(folder) as checks:
        for (request, source), state in cases.items():
            (folder / "say.py").write_text(source)
            results = await checks.before_verdict(request, ["say.py"])
            seen = [one.state for one in results if one.kind == "example"]
            if seen != [state]:
                wrong.append((request, source, results))
    assert not wrong


async def test_quick_tools_look_at_an_edit_and_say_nothing_of_files_they_do_not_know(folder: Path, checks_in):
    """J10: faults come back with the edit; a file without a tool costs nothing."""
    (folder / "a.py").write_text("def f():\n    return undefined_name\n")
    (folder / "b.sh").write_text("if true; then\n")
    (folder / "c.js").write_text("function (\n")
    (folder / "notes.txt").write_text("undefined\n")
    before = contents(folder)
    async with checks_in(folder) as checks:
        told = {"a.py": "undefined_name", "b.sh": "syntax error"}
        told |= {"c.js": "SyntaxError"} if shutil.which("node") else {}
        for path, words in told.items():
            *parsed, found = await checks.after_edit([path])
            assert (found.state, {one.state for one in parsed} <= {"passed"}) == ("failed", True), found
            assert words in found.detail
            assert path in found.text
        assert await checks.after_edit(["notes.txt"]) == ()
    asked = Asked()
    async with checks_in(folder, asked) as untouched:
        assert await untouched.after_edit(["notes.txt"]) == ()
    async with checks_in(folder, asked, after_edit=False, before_verdict=False) as off:
        assert await off.after_edit(["a.py"]) == ()
        assert await off.before_verdict("f() -> 1", ["a.py"]) == ()
    assert asked.times == 0
    assert contents(folder) == before


async def test_an_edit_that_is_fine_says_what_was_checked(folder: Path, checks_in):
    """J10: silence would not tell a clean file from one that no tool looked at."""
    (folder / "b.json").write_text("{}")
    (folder / "notes.txt").write_text("fine\n")
    async with checks_in(folder) as checks:
        assert checks_line(await checks.after_edit(["b.json"])) == "checked: syntax ok"
        assert checks_line(await checks.after_edit(["notes.txt"])) == ""


def test_quick_checks_are_told_in_a_line_and_what_they_found_in_full():
    parsed = CheckResult(kind="diagnostic", name="parsing a.py", state="passed", path="a.py")
    ruff = CheckResult(kind="diagnostic", name="ruff", state="passed", path="a.py")
    found = ruff.model_copy(update={"state": "failed", "detail": "a.py:1:1: F821\na.py:2:1: F401"})
    slow = ruff.model_copy(update={"name": "flake8", "state": "not_run", "detail": "it took longer than 2 s"})
    assert checks_line([parsed, parsed, ruff]) == "checked: syntax ok, ruff ok"
    assert checks_line([parsed, found]) == (
        "checked: syntax ok\ncheck of ruff (a.py): failed: a.py:1:1: F821\na.py:2:1: F401"
    )
    assert checks_line([slow]) == "checked: flake8 could not run (it took longer than 2 s)"
    assert checks_line([]) == ""


async def test_a_file_its_language_can_not_read_is_told_with_the_edit_even_without_any_tool(
    folder: Path, checks_in
):
    """J10: Python, JSON and TOML are parsed by the program itself, and nothing is started for it."""
    for path, source in {"a.py": "def f(:\n", "b.json": "{", "c.toml": "x = \n"}.items():
        (folder / path).write_text(source)
        asked = Asked()
        async with checks_in(folder, asked) as checks:
            (found,) = await checks.after_edit([path])
            assert (found.state, found.binding, asked.times) == ("failed", True, 0)
            assert path in found.text
            assert "does not parse" in found.detail


async def test_nothing_a_check_does_reaches_the_folder(folder: Path, checks_in):
    """J10: code that writes and deletes by relative and absolute path changes a copy, or nothing."""
    (folder / "keep.txt").write_text("as it was\n")
    (folder / "mod.py").write_text(
        "import os, pathlib, shutil\n"
        f"shutil.rmtree({str(folder)!r}, ignore_errors=True)\n"
        "pathlib.Path('keep.txt').write_text('other')\n"
        "shutil.rmtree('sub', ignore_errors=True)\n"
        f"os.symlink({str(folder)!r}, 'sub')\n"
        "def f():\n    return 1\n"
    )
    (folder / "sub").mkdir()
    (folder / "sub" / "x.py").write_text("x = 1\n")
    before = contents(folder)
    async with checks_in(folder) as checks:
        for _ in range(2):
            results = await checks.before_verdict("f() == 1", ["mod.py", "sub/x.py"], {"sub/x.py": "x = 2\n"})
    assert "f() == 1" in states(results), results
    assert contents(folder) == before


async def test_what_was_compiled_before_a_change_is_not_taken_for_the_change(folder: Path, checks_in):
    """J10: Python tells files apart by size and second, and both can be the same."""
    source = folder / "calc.py"
    source.write_text("def add(a, b):\n    return a - b\n")
    py_compile.compile(str(source))
    when = source.stat().st_mtime
    source.write_text("def add(a, b):\n    return a + b\n")
    os.utime(source, (when, when))
    async with checks_in(folder) as checks:
        found = await checks.before_verdict("add(2, 3) -> 5", ["calc.py"])
    assert settled(found) is True, found


@pytest.mark.parametrize("checks_in", BOTH[:1], indirect=True)
async def test_a_large_folder_is_checked_like_a_small_one(folder: Path, checks_in):
    """J10: the sandbox's copies cost the same however large it is; the tests next to a file are found."""
    deep = folder / "a" / "b"
    (deep / "tests").mkdir(parents=True)
    (deep / "calc.py").write_text(CALC)
    (deep / "tests" / "test_calc.py").write_text(
        "import sys\nsys.path.insert(0, 'a/b')\nfrom calc import add\ndef test():\n  assert add(1, 1) == 2\n"
    )
    for number in range(MOST_FILES + 1):
        (folder / f"{number}.txt").touch()
    async with checks_in(folder) as checks:
        found = await checks.before_verdict("add(2, 3) -> 5", ["a/b/calc.py"])
    passed = {name for name, state in states(found).items() if state == "passed"}
    assert {"add(2, 3) == 5", "doctests of a/b/calc.py", "a/b/tests/test_calc.py"} <= passed, found


OLD_CALC = "def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a\n"
CALC_TESTS = """from calc import add, half


def test_add():
    assert add(1, 2) == 3


def test_half():
    assert half(4) == 2
"""


@one_kind_of_copy
@every_row(
    ("request_text", "new", "counts"),
    [
        ("Give add a docstring", OLD_CALC.replace("a + b", "a + b  # the sum"), False),
        ("Give add a docstring", OLD_CALC.replace("a + b", "a - b"), True),
        ("Give add a docstring", OLD_CALC.replace("return a\n", "return a - 1\n"), True),
        ("Make tests/test_calc.py pass", OLD_CALC.replace("a + b", "a + b  # the sum"), True),
    ],
)
async def test_what_failed_in_the_same_way_before_does_not_count_unless_it_is_named_J3(
    folder: Path, checks_in, request_text: str, new: str, counts: bool
):
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "calc.py").write_text(new)
    (folder / "tests" / "test_calc.py").write_text(CALC_TESTS)
    (folder / "conftest.py").write_text("")
    async with checks_in(folder) as checks:
        found = await checks.before_verdict(request_text, ["calc.py"], before={"calc.py": OLD_CALC})
    (test,) = [one for one in found if one.kind == "test"]
    before = "the sum" in new
    assert (test.state, test.binding, test.before) == ("failed", counts, before), test
    assert settled(found) is (False if counts else None)
    assert ("in the same way before" in test.detail) is before


async def test_J3_an_example_that_held_before_may_be_the_bug_that_a_report_describes(folder: Path, checks_in):
    (folder / "calc.py").write_text(OLD_CALC.replace("a + b", "a + b + 1"))
    async with checks_in(folder) as checks:
        found = await checks.before_verdict(
            "add(2, 2) returns 4, and it should be one more", ["calc.py"], before={"calc.py": OLD_CALC}
        )
    (example,) = [one for one in found if one.kind == "example"]
    assert (example.state, example.binding) == ("failed", False), example
    assert "describes the old behaviour" in example.detail


@every_row(
    ("command", "expected"),
    [
        ("! test -e new.txt || { echo FAILED new; exit 1; }", ("failed", False, True)),
        ("echo FAILED old; exit 1", ("failed", True, True)),
        ("grep -q new calc.txt && echo FAILED new; echo FAILED old; exit 1", ("failed", False, True)),
        ("echo FAILED old in 0.$RANDOM s; exit 1", ("failed", True, True)),
        ("exit 1", ("failed", False, False)),
        ("make: nothing; exit 2", ("failed", False, False)),
        ("true", ("passed", False, True)),
    ],
)
async def test_J3_a_failed_test_command_is_compared_with_the_files_as_they_were(
    folder: Path, checks_in, command: str, expected: tuple[str, bool, bool]
):
    (folder / "calc.txt").write_text("new\n")
    (folder / "new.txt").write_text("x")
    failed = CheckResult(kind="test", name="make test", state="failed", binding=True, evidence_id="e1")
    async with checks_in(folder) as checks:
        found = await checks.compare_command(failed, command, {"calc.txt": "old\n"}, ["new.txt"])
    assert (found.state, found.before, found.compared) == expected


async def test_J3_a_comparison_that_ran_out_of_time_does_not_count_against_the_request(
    folder: Path, checks_in
):
    (folder / "calc.txt").write_text("new\n")
    failed = CheckResult(kind="test", name="make test", state="failed", binding=True, evidence_id="e1")
    slow_before = "grep -q old calc.txt && sleep 60; echo FAILED old; exit 1"
    async with checks_in(folder, verdict_timeout_s=1.5) as checks:
        found = await checks.compare_command(failed, slow_before, {"calc.txt": "old\n"}, [])
    assert (found.state, found.before, found.compared, found.binding) == ("failed", False, False, False)
    done = SatisfactionEvaluation(overall_score=1.0, done=True)
    shown = evaluation_text(Evaluated(iteration=1, evaluation=done, results=(found,)))
    assert "failed, perhaps also before this request, so not counted: make test" in shown


async def test_a_test_that_a_command_has_just_passed_is_not_run_again_J10(folder: Path, checks_in):
    (folder / "test_calc.py").write_text("def test_add():\n    raise AssertionError('run again')\n")
    (folder / "calc.py").write_text(OLD_CALC)
    ran = KnownRun("pytest -q test_calc.py", "exit code 0\n1 passed in 0.01s", "e7")
    async with checks_in(folder) as checks:
        (known,) = await checks.before_verdict("Mend calc.py", ["calc.py"], known=[ran])
        (again,) = await checks.before_verdict("Mend calc.py", ["calc.py"])
    assert (known.state, known.name, "[e7]" in known.detail) == ("passed", "test_calc.py", True)
    assert again.state == "failed"


@one_kind_of_copy
async def test_the_tests_that_the_request_names_are_run_wherever_they_are_J3(folder: Path, checks_in):
    (folder / "calc.py").write_text(OLD_CALC)
    (folder / "conftest.py").write_text("")
    (folder / "suite").mkdir(exist_ok=True)
    (folder / "suite" / "test_numbers.py").write_text(CALC_TESTS)
    asked = {
        "Make suite/test_numbers.py pass": {"suite/test_numbers.py": "failed"},
        "`suite/test_numbers.py::test_add` must pass.": {"suite/test_numbers.py::test_add": "passed"},
        "See my/suite/test_numbers.py": {},
        "suite/test_numbers.pyを通してください": {"suite/test_numbers.py": "failed"},
        "test_halfが通るように直して": {"suite/test_numbers.py::test_half": "failed"},
        "test_nothing and test_numbers.json": {},
    }
    async with checks_in(folder) as checks:
        for request_text, expected in asked.items():
            found = await checks.before_verdict(request_text, ["calc.py"], before={"calc.py": OLD_CALC})
            tests = [one for one in found if one.kind == "test"]
            assert states(tests) == expected, request_text
            assert all(one.binding for one in tests)
