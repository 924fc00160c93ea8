"""Runs one check in a copy and interprets the result."""

import asyncio
import inspect
import json
import secrets
import sys
from collections.abc import Callable, Sequence
from shlex import quote
from time import monotonic

from duckflow.domain.frozen import replace
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.checks import CheckResult, CheckState
from duckflow.evaluation.check_copies import CheckCopy
from duckflow.evaluation.diagnostics import Checker
from duckflow.evaluation.examples import MOST_EXAMPLES, CallExample, OutputExample, printed
from duckflow.evaluation.facts import CANT_START, failing_lines, runner_is_missing
from duckflow.evaluation.related_tests import RelatedTest, test_command
from duckflow.safety.sandbox.command_result import CommandResult

_DETAIL, _LINE = 1_500, 200
_NO_TESTS = 5
"""pytest's exit code if it found no tests."""

_FAILED = ("FAILED ", "ERROR ")
"""Prefixes of the lines in pytest's summary of failures."""

_NOT_BEGUN = (1, 2, 3, 4)
"""Exit codes of pytest if it could not load settings or a test, and of Python if pytest crashed."""

_NO_PLUGIN = lazy_regex(
    r"Unknown config option|unrecognized arguments|Missing required plugins|INTERNALERROR"
)

_NO_PACKAGE = lazy_regex(r"No module named '(\w+)'")
_CONFTEST = "ImportError while loading conftest"

_OF_THE_MACHINE = lazy_regex(r"Connection|Errno|[Tt]imed? ?out|Network")
"""Failures that differ from run to run: they mention a port, a time or an address."""

_EACH_S = 30.0
_NO_TIME = "there was no time left for it"
_NO_NAME = "NameError: name "


class TimeLeft:
    """Remaining time for checks, in total and per check."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def next(self) -> float:
        """Return the seconds for the next check; 0 if the time is used up."""
        return max(0.0, min(self._end - monotonic(), _EACH_S))


def python_of(find: Callable[[str], str | None]) -> str:
    """Return the command words that start the project's Python, otherwise the user's, otherwise our own."""
    other = find("python3") or find("python") or sys.executable
    return f'"$([ -x .venv/bin/python ] && echo .venv/bin/python || echo {quote(other)})" -B'


async def diagnose(
    copy: CheckCopy, tool: Checker, command: str, files: Sequence[str], seconds: float
) -> CheckResult | None:
    """Run a tool on files; None if it is not installed after all or reports nothing."""
    path = files[0] if len(files) == 1 else ""
    passed = CheckResult(kind="diagnostic", name=tool.name, state="passed", path=path)
    ended = await copy.run(command, seconds=seconds)
    if ended.timed_out:
        return replace(passed, state="not_run", detail=_slow(seconds))
    if ended.exit_code in CANT_START:
        return None
    if ended.exit_code == 0:
        return passed
    state = "failed" if ended.exit_code in tool.findings else "not_run"
    return replace(passed, state=state, detail=_shown(ended, copy))


def doctests_of(path: str) -> str:
    """Return the name of the check that runs a file's doctests."""
    return f"doctests of {path}"


async def run_calls(
    copy: CheckCopy, path: str, calls: Sequence[CallExample], python: str, time: TimeLeft, *, doctests: bool
) -> tuple[CheckResult, ...]:
    """Run the examples of a request for one Python file, and the file's own doctests."""
    if not calls and not doctests:
        return ()
    wanted = [[one.call, one.expected, one.raises] for one in calls]
    answers = await _ask_runner(copy, python, time, path=path, calls=wanted, doctests=doctests)
    named = [(one.name, True) for one in calls] + ([(doctests_of(path), False)] if doctests else [])
    return tuple(
        _example(name, path, state, cut(detail, _DETAIL), binding=binding)
        for (name, binding), (state, detail) in zip(named, answers, strict=False)
    )


def _example(name: str, path: str, state: CheckState, detail: str, *, binding: bool = True) -> CheckResult:
    return CheckResult(kind="example", name=name, state=state, detail=detail, path=path, binding=binding)


async def run_script(copy: CheckCopy, example: OutputExample, python: str, time: TimeLeft) -> CheckResult:
    """Check that a script prints the expected text."""

    def result(state: CheckState, detail: str = "") -> CheckResult:
        return _example(example.name, example.path, state, detail)

    seconds = time.next()
    if not seconds:
        return result("not_run", _NO_TIME)
    program = python if example.program == "python" else example.program
    ended = await copy.run(f"{program} {quote('./' + example.path)}", seconds=seconds)
    if ended.timed_out or ended.exit_code in CANT_START:
        return result("not_run", _slow(seconds) if ended.timed_out else _shown(ended, copy))
    if ended.exit_code != 0:
        foreign = "ModuleNotFoundError" in ended.output
        return result("not_run" if foreign else "failed", _shown(ended, copy))
    match printed(example, ended.output):
        case True:
            return result("passed")
        case False:
            return result("failed", f"it printed: {cut(ended.output.strip(), _DETAIL) or 'nothing'}")
        case None:
            said = f"it ran and printed: {cut(ended.output.strip(), _DETAIL)}"
            return result("not_run", f"{said}\n(whether that is what was meant can't be told by a program)")


async def run_test(copy: CheckCopy, test: RelatedTest, python: str, time: TimeLeft) -> CheckResult:
    """Run a file with tests.

    New tests without the code they test are not binding, because they may be written first. An undefined name
    is binding all the same: such tests can never pass.
    """

    def result(state: CheckState, detail: str = "") -> CheckResult:
        return CheckResult(
            kind="test",
            name=test.name,
            state=state,
            detail=detail,
            path=test.path,
            binding=not test.of_itself or (state == "failed" and _NO_NAME in detail),
        )

    source = test.source
    command, seconds = test_command(test.name, source, python), time.next()
    if not command or not seconds:
        return result("not_run", _NO_TIME if command else "it is not known how to run it")
    ended = await copy.run(command, seconds=seconds)
    if ended.timed_out:
        return result("not_run", _slow(seconds))
    missing = runner_is_missing(ended.exit_code, ended.output)
    if missing and ended.exit_code == 1 and "import pytest" not in source:
        answers = await _ask_runner(copy, python, time, path=test.path, tests=True)
        return result(*answers[0])
    if missing or ended.exit_code == _NO_TESTS or _is_not_set_up(ended, source):
        return result("not_run", _shown(ended, copy))
    if ended.exit_code == 0:
        return result("passed", _last_line(ended.output))
    named = "\n".join(failing_lines(ended.output))  # the shortened output must still name what failed
    return result("failed", head_and_tail(f"{named}\n{_shown(ended, copy)}", _DETAIL))


def _is_not_set_up(ended: CommandResult, source: str) -> bool:
    """Return whether tests could not start for an external reason, such as a missing plugin or package.

    A package that the tests import themselves does not count: it may be what should have been written.
    """
    if ended.exit_code not in _NOT_BEGUN:
        return False
    missing = _NO_PACKAGE.search(ended.output)
    lacks = missing is not None and (_CONFTEST in ended.output or missing[1] not in source)
    return lacks or _NO_PLUGIN.search(ended.output) is not None


async def failing_tests(
    copy: CheckCopy, test: RelatedTest, python: str, time: TimeLeft
) -> frozenset[str] | None:
    """Return all failing tests of a file; None if the runner does not list them."""
    command, seconds = test_command(test.path, test.source, python), time.next()
    if " -m pytest " not in command or not seconds:
        return None
    ended = await copy.run(command.replace(" -x ", " -rfE "), seconds=seconds)
    lines = (line for line in ended.output.splitlines() if line.startswith(_FAILED))
    named = frozenset(line.partition(" - ")[0] if _OF_THE_MACHINE.search(line) else line for line in lines)
    return None if ended.timed_out or (ended.exit_code != 0 and not named) else named


async def _ask_runner(
    copy: CheckCopy, python: str, time: TimeLeft, **wanted: object
) -> list[tuple[CheckState, str]]:
    """Return the example runner's results in order; if it did not finish, the reason for each."""
    seconds = time.next()
    if not seconds:
        return _for_all("not_run", _NO_TIME)
    mark = secrets.token_hex(8)
    asked = quote(json.dumps({"calls": [], "doctests": False, "tests": False, "mark": mark, **wanted}))
    from duckflow.evaluation import example_runner  # noqa: PLC0415 - with all that it needs, only to be read

    code = quote(await asyncio.to_thread(inspect.getsource, example_runner))
    ended = await copy.run(f"{python} -c {code} {asked}", seconds=seconds)
    for line in reversed(ended.output.splitlines()):
        if line.startswith(mark):
            return [(state, detail) for state, detail in json.loads(line.removeprefix(mark))]
    return _for_all("not_run", _slow(seconds) if ended.timed_out else _shown(ended, copy))


def _for_all(state: CheckState, detail: str) -> list[tuple[CheckState, str]]:
    """Return the same result for the maximum number of examples."""
    return [(state, detail)] * (MOST_EXAMPLES + 1)


def _shown(ended: CommandResult, copy: CheckCopy) -> str:
    """Return the shortened output, with paths relative to the workspace."""
    text = ended.output.replace(f"{copy.folder}/", "").replace(str(copy.folder), ".")
    return head_and_tail(text.strip(), _DETAIL)


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return cut(lines[-1].strip("= "), _LINE) if lines else ""


def _slow(seconds: float) -> str:
    return f"it took longer than {seconds:.0f} s"
