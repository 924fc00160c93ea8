"""J3: tests that failed are noticed although the command's exit code is 0, and nothing else is."""

from duckflow.evaluation.test_outcomes import failed_tests
from fakes.rows import every_row

PYTEST = "..F\nFAILED test_a.py::test_x - assert 4 == 3\n1 failed, 2 passed in 0.10s"


@every_row(
    ("command", "output", "failed"),
    [
        ("pytest -q || true", PYTEST, True),
        ("cd x && python3 -m pytest -q; echo done", PYTEST, True),
        ("PYTHONPATH=. timeout 60 python -m pytest -x || echo bad", PYTEST, True),
        ("(cd a; pytest -q) || true", PYTEST, True),
        ("bash -c 'pytest -q || true'", PYTEST, True),
        ("if pytest -q; then echo ok; fi", PYTEST, True),
        ("pytest; true", "\x1b[31m=== \x1b[1m1 failed\x1b[0m, 2 passed in 61.12s (0:01:01) ===\x1b[0m", True),
        ("pytest || true", "1 error in 0.20s", True),
        ("python -m unittest || true", "FAILED (failures=1, errors=2)", True),
        ("make test || true", "make: *** [Makefile:3: test] Error 1", True),
        ("npm test || true", "Tests:       1 failed, 3 passed, 4 total", True),
        ("npm run test:unit || true", "  2 failing", True),
        (
            "npx vitest run; true",
            " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 9 passed (10)",
            True,
        ),
        ("node --test || true", "ℹ fail 2", True),
        ("go test ./... || true", "--- FAIL: TestX (0.00s)\nFAIL\texample.com/x\t0.1s", True),
        ("cargo test || true", "test result: FAILED. 1 passed; 1 failed; 0 ignored", True),
        ("ctest || true", "50% tests passed, 1 tests failed out of 2", True),
        ("./gradlew test || true", "12 tests completed, 1 failed", True),
        ("pytest -q || true", "3 passed in 0.1s", False),
        ("pytest -q || true", "3 passed, 0 failed in 0.1s", False),
        ("pytest; true", "1 passed, 2 xfailed in 0.1s", False),
        (
            "pytest -s; true",
            "the request failed in 3 seconds\nerror: 1 failed login\n1 passed in 0.1s",
            False,
        ),
        ("npm test; true", "Tests:       4 passed, 4 total\n0 failed", False),
        ("cargo test; true", "test result: ok. 2 passed; 0 failed; 0 ignored", False),
        ("node --test; true", "ℹ fail 0", False),
        ("prove || true; tox --version", "not ok 3 - later # TODO", False),
        ("grep -n failed log.txt", PYTEST, False),
        ("cat pytest.log", PYTEST, False),
        ("echo pytest", PYTEST, False),
        ("python3 run.py || true", PYTEST, False),
        ("make build", "make: *** [Makefile:3: x] Error 1", False),
        ("git stash; pytest -q; git stash pop; pytest -q", PYTEST, False),
    ],
)
def test_J3_only_the_summary_of_a_test_runner_that_ran_says_that_tests_failed(
    command: str, output: str, failed: bool
):
    assert bool(failed_tests(command, output)) is failed
