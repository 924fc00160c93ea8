"""Runs checks in a copy and interprets the results."""

import asyncio
import inspect
import json
import secrets
import sys
from collections.abc import Callable, Sequence
from functools import partial
from shlex import quote
from time import monotonic

from duckflow.domain.frozen import replace
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.checks import DOCTESTS, CheckResult, CheckState
from duckflow.evaluation.check_copies import CheckCopy
from duckflow.evaluation.diagnostics import Checker
from duckflow.evaluation.examples import MOST_EXAMPLES, CallExample, OutputExample, printed
from duckflow.evaluation.facts import CANT_START, failing_lines, runner_is_missing, telling_lines
from duckflow.evaluation.related_tests import RelatedTest, test_command
from duckflow.evaluation.test_outcomes import failed_tests
from duckflow.safety.sandbox.command_result import CommandResult

_DETAIL, _LINE = 1_500, 200
_NO_TESTS = 5
"""pytest's exit code if it found no tests."""

_FAILED, _RUNNERS = ("FAILED ", "ERROR "), ("make", "npm")
_DURATION = lazy_regex(r"\b\d[\d.]*\s?m?s\b")

_NOT_BEGUN = (1, 2, 3, 4)
"""Exit codes if no test ran: pytest could not load settings or a test, or Python could not run pytest."""

_NO_PLUGIN = lazy_regex(
    r"Unknown config option|unrecognized arguments|Missing required plugins|INTERNALERROR"
)

_NO_PACKAGE = lazy_regex(r"No module named '(\w+)'")
_CONFTEST = "ImportError while loading conftest"

_OF_THE_MACHINE = lazy_regex(r"Connection|Errno|[Tt]imed? ?out|Network")
"""Failure messages that differ from run to run, because they contain a port, a time or an address."""

_EACH_S = 30.0
_NO_TIME = "there was no time left for it"
_NO_NAME = "NameError: name "


def python_of(find: Callable[[str], str | None]) -> str:
    """Return shell words that start Python: the project's, else the user's, else the one of Duckflow."""
    other = find("python3") or find("python") or sys.executable
    return f'"$([ -x .venv/bin/python ] && echo .venv/bin/python || echo {quote(other)})" -B'


def doctests_of(path: str) -> str:
    """Return the name of the check that runs a file's doctests."""
    return f"{DOCTESTS}{path}"


class CheckRunner:
    """Runs checks in one copy until the time `end` of `monotonic`. `python` are words that start Python."""

    def __init__(self, copy: CheckCopy, end: float, python: str = "") -> None:
        self._copy = copy
        self._end = end
        self._python = python

    async def run(self, command: str, *, most_s: float = _EACH_S) -> CommandResult | str:
        """Run a command and return its result, or the reason as text if there is not enough time."""
        seconds = min(self._end - monotonic(), most_s)
        if seconds <= 0:
            return _NO_TIME
        ended = await self._copy.run(command, seconds=seconds)
        return f"it took longer than {seconds:.0f} s" if ended.stopped == "seconds" else ended

    async def diagnose(self, tool: Checker, command: str, files: Sequence[str]) -> CheckResult | None:
        """Run a tool on files. None if there is no time for it, or if it is not installed."""
        path = files[0] if len(files) == 1 else ""
        passed = CheckResult(kind="diagnostic", name=tool.name, state="passed", path=path)
        ended = await self.run(command)
        if isinstance(ended, str):
            return replace(passed, state="not_run", detail=ended) if ended != _NO_TIME else None
        if ended.exit_code in CANT_START:
            return None
        if ended.exit_code == 0:
            return passed
        state = "failed" if ended.exit_code in tool.findings else "not_run"
        return replace(passed, state=state, detail=self._shown(ended))

    async def run_calls(
        self, path: str, calls: Sequence[CallExample], *, doctests: bool
    ) -> tuple[CheckResult, ...]:
        """Run the examples of a request for one Python file, and the file's own doctests."""
        if not calls and not doctests:
            return ()
        wanted = [[one.call, one.expected, one.raises] for one in calls]
        answers = await self._ask_script(path=path, calls=wanted, doctests=doctests)
        named = [(one.name, True) for one in calls] + ([(doctests_of(path), False)] if doctests else [])
        return tuple(
            _example(name, path, state, cut(detail, _DETAIL), binding=binding)
            for (name, binding), (state, detail) in zip(named, answers, strict=False)
        )

    async def run_script(self, example: OutputExample) -> CheckResult:
        """Check whether a script prints the expected text."""
        result = partial(_example, example.name, example.path)
        program = self._python if example.program == "python" else example.program
        ended = await self.run(f"{program} {quote('./' + example.path)}")
        if isinstance(ended, str):
            return result("not_run", ended)
        if ended.exit_code != 0:
            foreign = ended.exit_code in CANT_START or "ModuleNotFoundError" in ended.output
            return result("not_run" if foreign else "failed", self._shown(ended))
        output = cut(ended.output.strip(), _DETAIL)
        match printed(example, ended.output):
            case True:
                return result("passed", "")
            case False:
                return result("failed", f"it printed: {output or 'nothing'}")
            case None:
                return result("not_run", f"it printed this, which may be what was meant: {output}")

    async def run_test(self, test: RelatedTest) -> CheckResult:
        """Run a test file.

        If only the test file has changed, a failure is not binding, because the code may be written later. It
        is binding if a name is undefined, because such tests can never pass.
        """
        state, detail = await self._test_result(test)
        binding = not test.of_itself or (state == "failed" and _NO_NAME in detail)
        return CheckResult(
            kind="test", name=test.name, state=state, detail=detail, path=test.path, binding=binding
        )

    async def _test_result(self, test: RelatedTest) -> tuple[CheckState, str]:
        command = test_command(test.name, test.source, self._python)
        if not command:
            return "not_run", "it is not known how to run it"
        ended = await self.run(command)
        if isinstance(ended, str):
            return "not_run", ended
        missing = runner_is_missing(ended.exit_code, ended.output)
        if missing and ended.exit_code == 1 and "import pytest" not in test.source:
            return (await self._ask_script(path=test.path, tests=True))[0]
        if missing or ended.exit_code == _NO_TESTS or _is_not_set_up(ended, test.source):
            return "not_run", self._shown(ended)
        if ended.exit_code == 0:
            return "passed", cut(ended.output.strip().rpartition("\n")[2].strip("= "), _LINE)
        named = "\n".join(failing_lines(ended.output))  # the shortened output must still name what failed
        return "failed", head_and_tail(f"{named}\n{self._shown(ended)}", _DETAIL)

    async def failing_tests(self, test: RelatedTest) -> frozenset[str] | None:
        """Return all failing tests of a file, None if the test runner does not list them."""
        command = test_command(test.path, test.source, self._python)
        ended = await self.run(command.replace(" -x ", " -rfE ")) if " -m pytest " in command else ""
        if isinstance(ended, str):
            return None
        return failures_of(ended)

    async def _ask_script(self, **wanted: object) -> list[tuple[CheckState, str]]:
        """Return the example script's results in order. If it did not finish, each one is the reason."""
        mark = secrets.token_hex(8)
        asked = quote(json.dumps({"calls": [], "doctests": False, "tests": False, "mark": mark, **wanted}))
        from duckflow.evaluation import example_runner  # noqa: PLC0415 - only its source is needed

        code = quote(await asyncio.to_thread(inspect.getsource, example_runner))
        ended = await self.run(f"{self._python} -c {code} {asked}")
        output = "" if isinstance(ended, str) else ended.output
        for line in reversed(output.splitlines()):
            if line.startswith(mark):
                return [(state, detail) for state, detail in json.loads(line.removeprefix(mark))]
        reason = ended if isinstance(ended, str) else self._shown(ended)
        return [("not_run", reason)] * (MOST_EXAMPLES + 1)

    def _shown(self, ended: CommandResult) -> str:
        folder = str(self._copy.folder)
        return head_and_tail(ended.output.replace(f"{folder}/", "").replace(folder, ".").strip(), _DETAIL)


_RUNNER_FAILED = (3, 4)
"""pytest's exit codes for an internal error and wrong options: no test ran, and the last line says why."""


def failures_of(ended: CommandResult, command: str = "") -> frozenset[str] | None:
    """Return the lines that name failures, without what differs from run to run. None if there are none.

    `command` tells whether the exit code 0 may hide failed tests.
    """
    if ended.exit_code == 0 and not failed_tests(command, ended.output):
        return frozenset()
    lines = [line for line in ended.output.splitlines() if line.startswith(_FAILED)]
    lines = lines or [line for line in telling_lines(ended.output) if not line.startswith(_RUNNERS)]
    if not lines and ended.exit_code in _RUNNER_FAILED:
        lines = ended.output.strip().splitlines()[-1:]
    cleaned = (line.partition(" - ")[0] if _OF_THE_MACHINE.search(line) else line for line in lines)
    return frozenset(_DURATION.sub("", line) for line in cleaned) or None


def _example(name: str, path: str, state: CheckState, detail: str, *, binding: bool = True) -> CheckResult:
    return CheckResult(kind="example", name=name, state=state, detail=detail, path=path, binding=binding)


def _is_not_set_up(ended: CommandResult, source: str) -> bool:
    """Return whether a plugin or package is missing that the tests themselves do not import."""
    if ended.exit_code not in _NOT_BEGUN:
        return False
    missing = _NO_PACKAGE.search(ended.output)
    lacks = missing is not None and (_CONFTEST in ended.output or missing[1] not in source)
    return lacks or _NO_PLUGIN.search(ended.output) is not None
