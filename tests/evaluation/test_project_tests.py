"""The test command of a project, and the user's answer about it."""

import pytest

from duckflow.config.places import state_dir
from duckflow.evaluation.facts import failing_lines
from duckflow.evaluation.project_tests import MEMORY, ProjectTests
from duckflow.safety.files.workspace import Workspace
from fakes.rows import every_row

PYTEST = "python3 -m pytest -q"


@pytest.fixture
def tests(folder):
    workspace = Workspace(folder)
    yield ProjectTests(workspace)
    workspace.close()


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({}, ""),
        ({"README.md": ""}, ""),
        ({"Makefile": "test:\n\tpytest\n"}, "make test"),
        ({"Makefile": "build:\n\tcc\n"}, ""),
        ({"Makefile": "tests:\n\tcc\n"}, ""),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ""),
        ({"package.json": '{"scripts": 3}'}, ""),
        ({"package.json": "{"}, ""),
        ({"package.json": "[" * 100_000}, ""),
        ({"pytest.ini": ""}, PYTEST),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, PYTEST),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, ""),
        ({"pyproject.toml": "[project]\n", "tests/test_a.py": ""}, PYTEST),
        ({"pyproject.toml": "[broken"}, ""),
        ({"tests/test_a.py": "", "a.py": ""}, PYTEST),
        ({"tests/a.t": ""}, ""),
        ({"a.py": "", "test_a.py": ""}, PYTEST),
        ({"a_test.py": ""}, PYTEST),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": ""}, "go test ./..."),
        ({"Makefile": "test:\n", "pytest.ini": ""}, "make test"),
    ],
)
def test_J3_the_command_is_told_by_the_files(folder, tests, files, command):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert tests.find() == command


def test_J3_the_projects_own_python_runs_its_tests(folder, tests):
    (folder / "test_a.py").touch()
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to("/bin/sh")
    assert tests.find() == ".venv/bin/python -m pytest -q"


@pytest.mark.parametrize("wanted", [True, False])
def test_J3_what_the_user_said_is_remembered_for_this_very_command(tests, wanted):
    assert tests.wanted(PYTEST) is None
    tests.remember(PYTEST, wanted=wanted)
    assert tests.wanted(PYTEST) is wanted
    assert tests.wanted("make test") is None


def test_J3_a_memory_that_can_not_be_read_asks_again(tests):
    tests.remember(PYTEST, wanted=True)
    (state_dir() / MEMORY).write_text('{"a": 3, "b"')
    assert tests.wanted(PYTEST) is None
    tests.remember(PYTEST, wanted=False)
    assert tests.wanted(PYTEST) is False


@every_row(
    ("output", "named"),
    [
        ("..F\n= FAILURES =\nFAILED test_a.py::test_x - assert 1 == 2\n1 failed, 2 passed in 0.1s", "test_x"),
        ("--- FAIL: TestSum (0.00s)\n    sum_test.go:9: got 3\nFAIL\nexit status 1", "TestSum"),
        ("ok 1 - a\nnot ok 2 - adds numbers\n", "adds numbers"),
        ("test a ... ok\ntest b ... FAILED\n\nfailures:\n    b\n", "test b"),
        ("main.c:3:5: error: expected ';'\n", "expected ';'"),
        ("  ✕ renders (3 ms)\n", "renders"),
        ("one\ntwo\nit went wrong\n", "it went wrong"),
    ],
)
def test_J5_the_lines_that_name_what_failed_are_found(output, named):
    lines = failing_lines(output)
    assert any(named in line for line in lines)
    assert len(lines) <= 5
    assert "1 failed, 2 passed in 0.1s" not in lines


def test_J5_nothing_said_names_nothing():
    assert failing_lines("") == ()
