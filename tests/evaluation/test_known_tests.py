"""Tests that a model has just run itself are not run again (J10)."""

from duckflow.evaluation.known_tests import KnownRun, passed_in, passed_whole, python_used
from fakes.rows import every_row

PASSED = "exit code 0\n.....                                 [100%]\n5 passed in 0.03s"
TEST = "tests/test_calc.py"


def known(command: str, output: str = PASSED) -> str:
    return passed_in(TEST, [KnownRun(command, output, "e4")])


@every_row(
    "command",
    [
        "pytest tests/test_calc.py",
        "python -m pytest -q tests/test_calc.py tests/test_other.py",
        ".venv/bin/pytest tests -q --tb=short",
        ".venv/bin/python -m pytest ./tests -x -q -n 0 --tb line 2>&1 | tail -5",
        "PYTHONPATH=src uv run pytest tests/test_calc.py && git diff --stat",
        "python3 -m pytest -q -p no:cacheprovider tests/test_calc.py",
        "python -B -m pytest tests/test_calc.py",
        "pytest tests/test_calc.py || true",
        "pytest tests -q 2>&1 | tail -15; git diff --stat",
        "git status --short\npytest tests/test_calc.py\nls tests",
    ],
)
def test_a_run_of_the_whole_file_counts_J10(command):
    assert known(command) == "e4"


@every_row(
    "command",
    [
        "pytest",  # the project's settings name the tests
        "pytest tests/test_other.py",
        "pytest tests/test_calc.py::test_add",
        "pytest tests/test_calc.py -k add",
        "pytest tests/test_calc.py -m 'not slow'",
        "pytest tests --lf",
        "pytest tests --ignore tests/test_calc.py",
        "pytest tests -p mine",
        "cd other && pytest tests/test_calc.py",
        "pytest tests/test_calc.py > log",
        "pytest tests/test_calc.py > log; echo '5 passed in 0.03s'",
        "pytest tests/test_calc.py -q | head -0; cat earlier.log",
        "git stash; pytest tests/test_calc.py; git stash pop",
        "pytest tests/test_calc.py | sed s/failed/passed/",
        "pytest tests/test_calc.py | grep passed",
        "pytest tests/test_calc.py && pytest tests/test_other.py",
        "echo tests/test_calc.py",
        "pytest 'tests/test_calc.py",
    ],
)
def test_anything_less_than_certain_is_run_again_J10(command):
    assert known(command) == ""


@every_row(
    ("output", "counts"),
    [
        ("=== 5 passed, 2 skipped, 1 warning in 1.20s ===", True),
        ("5 passed in 65.11s (0:01:05)", True),
        ("1 failed, 4 passed in 0.10s", False),
        ("5 passed, 1 error in 0.10s", False),
        ("3 deselected, 2 passed in 0.10s", False),
        ("no tests ran in 0.01s", False),
        ("5 passed in 0.1s\n5 passed in 0.1s", False),
        ("", False),
    ],
)
def test_only_a_summary_without_any_failure_counts_J10(output, counts):
    assert bool(known("pytest tests/test_calc.py", output)) is counts


@every_row(
    ("command", "words"),
    [
        (
            "PYTHONPATH=src /opt/env/bin/python -m pytest tests -q 2>&1 | tail -3",
            "PYTHONPATH=src /opt/env/bin/python",
        ),
        ("cd . && env/bin/pytest tests; git diff", "env/bin/python"),
        ("ls\n/opt/env/bin/python -B -m pytest", "/opt/env/bin/python -B"),
        (
            "export PYTHONPATH=src; PY=/opt/env/bin/python\n$PY -m pytest",
            "PYTHONPATH=src /opt/env/bin/python",
        ),
        ("P='/opt/env/bin/python -X dev'; $P -m pytest a", "/opt/env/bin/python -X dev"),
        ("/opt/env/bin/python -Wd -m pytest a", "/opt/env/bin/python -Wd"),
        ("E=/opt/env; A=1 ${E}/bin/python -m pytest -q", "A=1 /opt/env/bin/python"),
        ("python -m pytest", ""),
        ("$PY -m pytest", ""),
        ("/opt/new/bin/python setup.py", ""),
        ("/opt/env/bin/python -m pytest 'unfinished", ""),
    ],
)
def test_tests_are_started_as_the_model_started_them_J10(command, words):
    assert python_used(["/opt/old/bin/pytest", command]) == (words or "/opt/old/bin/python")


def test_without_a_run_tests_are_started_as_the_request_says_J10():
    request = "Mend it.\nRun tests with `PYTHONPATH=src env/bin/python -m pytest tests` (see `pytest.ini`)."
    assert python_used([], request) == "PYTHONPATH=src env/bin/python"
    assert python_used(["env/other/python -m pytest"], request) == "PYTHONPATH=src env/bin/python"
    assert python_used(["timeout 300 env/other/python -m pytest"], "Mend it") == "env/other/python"
    assert python_used(["ls"], "Mend the tests") == ""
    assert python_used(["cd tests; ../env/bin/python runtests.py"], "Mend it") == "../env/bin/python"


@every_row(
    ("command", "output", "counts"),
    [
        ("python -m pytest -q 2>&1 | tail -5", PASSED, True),
        ("pytest", PASSED, True),
        ("git diff --stat; pytest -x -q", PASSED, True),
        ("pytest -q | tail -5", "1 failed, 4 passed in 0.03s", False),
        ("pytest -q | head -5", ".....", False),
        ("pytest tests -q", PASSED, False),
        ("pytest -q -k add", PASSED, False),
        ("pytest && pytest", PASSED, False),
    ],
)
def test_a_whole_run_that_passed_is_not_repeated_by_the_program_J3(command, output, counts):
    runs = [KnownRun(command, output, "e4")]
    assert passed_whole("python3 -m pytest -q", runs) == ("e4" if counts else "")
    assert passed_whole("make test", runs) == ""
