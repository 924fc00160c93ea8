"""Checks that run something in a copy: quick ones after an edit, thorough ones before a verdict (J10)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from shlex import quote
from time import monotonic
from typing import NamedTuple

from duckflow.config.settings import CheckSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import replace
from duckflow.domain.text import cut
from duckflow.domain.work.checks import PARSING, CheckResult
from duckflow.evaluation.check_copies import CheckCopies
from duckflow.evaluation.check_runs import CheckRunner, doctests_of, failures_of, python_of
from duckflow.evaluation.diagnostics import CHECKERS, Checker, chosen, commands, configurations, known
from duckflow.evaluation.examples import CallExample, OutputExample, call_examples, output_examples
from duckflow.evaluation.facts import look_at, parsed_here
from duckflow.evaluation.known_tests import KnownRun, passed_in, python_used
from duckflow.evaluation.related_tests import (
    MOST_TESTS,
    RelatedTest,
    is_test,
    left_out,
    likely_tests,
    named_functions,
    named_tests,
    related_tests,
    tests_called,
)

MOST_FILES = 20
"""Largest number of changed files to check. If there are more, the last changed ones are checked."""

_BEFORE = "it failed in the same way before the request changed anything"
_HELD_BEFORE = "it held before the request: either it describes the old behaviour, or the change broke it"
_READ = 200_000
_DETAIL = 300


class _Work(NamedTuple):
    done: tuple[CheckResult, ...]
    """Results that need no run: of parsing, and of tests that passed in a command of the model."""
    sources: Mapping[str, str]
    calls: Mapping[str, tuple[CallExample, ...]]
    outputs: tuple[OutputExample, ...]
    tests: tuple[RelatedTest, ...]
    tools: tuple[Checker, ...]

    @property
    def doctests(self) -> tuple[str, ...]:
        return tuple(path for path, text in self.sources.items() if path.endswith(".py") and ">>> " in text)

    @property
    def anything(self) -> bool:
        return bool(any(self.calls.values()) or self.doctests or self.outputs or self.tests or self.tools)

    def not_run(self, why: str) -> tuple[CheckResult, ...]:
        calls = (one for examples in self.calls.values() for one in examples)
        missed = partial(CheckResult, state="not_run", detail=why)
        return (
            *self.done,
            *(missed(kind="example", name=one.name, path=one.path) for one in (*calls, *self.outputs)),
            *(missed(kind="test", name=one.name) for one in self.tests),
        )


class Checks:
    """Checks files of one workspace. `find` returns the path of a program outside the workspace, or None."""

    def __init__(
        self,
        copies: CheckCopies,
        settings: CheckSettings,
        find: Callable[[str], str | None],
        table: Sequence[Checker] = CHECKERS,
    ) -> None:
        self._copies = copies
        self._table = table
        self._settings = settings
        self._find = find
        self._unfit: set[str] = set()

    async def after_edit(self, paths: Sequence[str]) -> tuple[CheckResult, ...]:
        """Parse files that were just written, and run quick tools on them. Empty if none apply."""
        if not self._settings.after_edit:
            return ()
        own = [path for path in paths if parsed_here(path)][-MOST_FILES:]
        parsed = await asyncio.to_thread(self._parse, own) if own else ()
        if any(one.state == "failed" for one in parsed):
            return parsed  # tools would only repeat these errors
        return (*parsed, *await self._run_quick_tools(paths))

    async def _run_quick_tools(self, paths: Sequence[str]) -> tuple[CheckResult, ...]:
        fitting = tuple(path for path in paths if known(path, self._table))[-MOST_FILES:]
        if not fitting:
            return ()
        tools = chosen(fitting, await asyncio.to_thread(self._top), quick=True, table=self._table)
        tools = tuple(tool for tool in tools if tool.name not in self._unfit)
        if not any(commands(tool, fitting, self._find) for tool in tools):
            return ()
        try:
            async with self._copies.copy(near=fitting) as copy:
                runner = CheckRunner(copy, monotonic() + self._settings.edit_timeout_s)
                return await self._diagnose(runner, tools, fitting)
        except ToolError:
            return ()  # a check that can't run must not disturb the edit

    async def before_verdict(
        self,
        request: str,
        changed: Sequence[str],
        candidate: Mapping[str, str] | None = None,
        *,
        known: Sequence[KnownRun] = (),
        before: Mapping[str, str] | None = None,
        commands: Sequence[str] = (),
    ) -> tuple[CheckResult, ...]:
        """Run the examples in a request, the tests of the changed files, and slower tools.

        `candidate`: content of files that are not written yet; `before`: content of the changed files before
        the request. `known`: commands that succeeded with the current files, whose tests are not run again.
        `commands`: all commands of the request, which show how tests are started.
        """
        new = candidate or {}
        paths = tuple(dict.fromkeys([*changed, *new]))[-MOST_FILES:]
        if not self._settings.before_verdict or not paths:
            return ()
        work = await asyncio.to_thread(self._gather, request, paths, new, known)
        if not work.anything:
            return work.done
        python = python_used(commands, request) or python_of(self._find)
        try:
            async with self._copies.copy(changed=paths, files=new) as copy:
                end = monotonic() + self._settings.verdict_timeout_s
                results = await self._run(CheckRunner(copy, end, python), work)
            return await self._compared(request, work, results, before, python) if before else results
        except ToolError as error:
            return work.not_run(cut(str(error), _DETAIL))

    async def of_draft(
        self, request: str, files: Mapping[str, str], command: str = ""
    ) -> tuple[CheckResult, ...]:
        """Run the checks of `before_verdict` on files not written yet, then the verifying command."""
        results = await self.before_verdict(request, (), files)
        if not command:
            return results
        try:
            async with self._copies.copy(files=files) as copy:
                runner = CheckRunner(copy, monotonic() + self._settings.verdict_timeout_s)
                ended = await runner.run(command)
        except ToolError:
            return results
        passed = not isinstance(ended, str) and ended.exit_code == 0
        state = "passed" if passed else "failed"
        return (*results, CheckResult(kind="test", name=cut(command, _DETAIL), state=state, binding=True))

    async def compare_command(
        self, failed: CheckResult, command: str, before: Mapping[str, str], created: Iterable[str]
    ) -> CheckResult:
        """Run a failed test command again, and mark it if it failed in the same way before (J3).

        It is not `compared` if that can't be found out. If the time was too short for it, it does not bind
        either, unless the first run did not end. `before`: content of the changed files before the request,
        which `created` the other files.
        """
        seconds = self._settings.verdict_timeout_s
        gone = " ".join(("rm -rf --", *map(quote, created)))
        try:
            async with self._copies.copy(changed=before) as copy:
                ended = await CheckRunner(copy, monotonic() + seconds).run(command, most_s=seconds)
            now = None if isinstance(ended, str) else failures_of(ended, command)
            if now:
                async with self._copies.copy(files=before) as copy:
                    runner = CheckRunner(copy, monotonic() + seconds)
                    ended = await runner.run(f"{gone}\n{command}", most_s=seconds)
        except ToolError:
            return replace(failed, compared=False)
        if isinstance(ended, str):
            return replace(failed, compared=False, binding=failed.binding and not failed.evidence_id)
        then = failures_of(ended, command)
        if now == frozenset():
            return replace(failed, state="passed", detail="", evidence_id="")
        if not now or then is None:
            return replace(failed, compared=False)
        return _failed_before(failed) if now <= then else failed

    async def aclose(self) -> None:
        """Close the copies."""
        await self._copies.aclose()

    async def _run(self, runner: CheckRunner, work: _Work) -> tuple[CheckResult, ...]:
        results = [*work.done]
        for path, calls in work.calls.items():
            results += await runner.run_calls(path, calls, doctests=path in work.doctests)
        results += [await runner.run_script(output) for output in work.outputs]
        results += [await runner.run_test(test) for test in work.tests]
        results += await self._diagnose(runner, work.tools, tuple(work.sources))
        return tuple(results)

    async def _compared(
        self,
        request: str,
        work: _Work,
        results: tuple[CheckResult, ...],
        before: Mapping[str, str],
        python: str,
    ) -> tuple[CheckResult, ...]:
        """Mark failures that existed before or can't be compared. Only tests named in the request bind.

        A failed example that held before may be the bug that a report describes, so it does not bind either.
        """
        named = {one.name for one in named_tests(request, [test.path for test in work.tests])}
        named |= {test.name for test in work.tests if "::" in test.name}
        failed = {one.name for one in results if one.state == "failed"}
        tests = [one for one in work.tests if one.name in failed]
        tests = [one for one in tests if one.path in before or one.path not in work.sources]
        doctests = [path for path in work.doctests if path in before and doctests_of(path) in failed]
        calls = {
            path: [one for one in examples if one.name in failed]
            for path, examples in work.calls.items()
            if path in before
        }
        if not tests and not doctests and not any(calls.values()):
            return results
        end = monotonic() + self._settings.verdict_timeout_s
        async with self._copies.copy(changed=work.sources) as copy:
            runner = CheckRunner(copy, end, python)
            now = [await runner.failing_tests(one) for one in tests]
        async with self._copies.copy(files=before) as copy:
            runner = CheckRunner(copy, end, python)
            then = [await runner.failing_tests(one) for one in tests]
            runs = [await runner.run_calls(path, (), doctests=True) for path in doctests]
            shown = [await runner.run_calls(path, some, doctests=False) for path, some in calls.items()]
        old = {one.name for ran in runs for one in ran if one.state == "failed"}
        held = {one.name for ran in shown for one in ran if one.state == "passed"}
        unknown: set[str] = set()
        for test, failing, failed_before in zip(tests, now, then, strict=True):
            if failing is None or failed_before is None:
                unknown.add(test.name)
            elif failing and failing <= failed_before:
                old.add(test.name)

        def with_past(one: CheckResult) -> CheckResult:
            if one.name in held:
                return replace(one, binding=False, detail=f"{_HELD_BEFORE}\n{one.detail}")
            binding = one.binding and one.name in named
            if one.name in old & failed:
                return replace(_failed_before(one), binding=binding)
            return replace(one, binding=binding, compared=False) if one.name in unknown & failed else one

        return tuple(map(with_past, results))

    async def _diagnose(
        self, runner: CheckRunner, tools: Iterable[Checker], paths: Sequence[str]
    ) -> tuple[CheckResult, ...]:
        results: list[CheckResult] = []
        for tool in tools:
            for command, files in commands(tool, paths, self._find):
                found = await runner.diagnose(tool, command, files)
                if found is None:
                    continue
                results.append(found)
                if found.state == "not_run":
                    self._unfit.add(tool.name)  # too slow or broken on this machine, so do not try it again
        return tuple(results)

    def _top(self) -> dict[str, str]:
        workspace = self._copies.workspace
        wanted = configurations(self._table)
        names = (entry.path for entry in workspace.list(".", depth=1, limit=500).entries)
        return {name: self._text(name) for name in names if name in wanted}

    def _parse(self, paths: Iterable[str]) -> tuple[CheckResult, ...]:
        return tuple(_parsed(path, text) for path in paths if (text := self._text(path)))

    def _text(self, path: str) -> str:
        try:
            return self._copies.workspace.read_bytes(path, cap=_READ).decode("utf-8-sig", "replace")
        except ToolError:
            return ""

    def _is_there(self, path: str) -> bool:
        try:
            return self._copies.workspace.status(path) is not None
        except ToolError:
            return False

    def _gather(
        self, request: str, paths: Sequence[str], candidate: Mapping[str, str], known: Sequence[KnownRun]
    ) -> _Work:
        sources = {path: candidate[path] if path in candidate else self._text(path) for path in paths}
        sources = {path: text for path, text in sources.items() if text}
        files = {*self._copies.files(), *sources, *filter(self._is_there, likely_tests(sources))}
        named = named_tests(request, files)
        if names := named_functions(request):
            own = (path for path in sorted(files) if is_test(path) and path.endswith(".py"))
            called = (tests_called(names, path, sources.get(path) or self._text(path)) for path in own)
            named = (*named, *chain.from_iterable(called))[:MOST_TESTS]
        apart = {*(one.name for one in named), *left_out(request)}
        tests = (*named, *(one for one in related_tests(sources, files) if one.path not in apart))
        passed = {one.name: of for one in tests if (of := passed_in(one.path, known))}
        top = self._top()
        tools = chosen(candidate, top, quick=True, table=self._table)
        tools += chosen(sources, top, quick=False, table=self._table)
        return _Work(
            done=(
                *(_parsed(path, text) for path, text in candidate.items()),
                *(_passed_before(name, of) for name, of in passed.items()),
            ),
            sources=sources,
            calls={path: call_examples(request, path, text) for path, text in sources.items()},
            outputs=_outputs(request, sources),
            tests=tuple(
                replace(one, source=sources.get(one.path) or self._text(one.path))
                for one in tests
                if one.name not in passed
            ),
            tools=tuple(one for one in tools if one.name not in self._unfit),
        )


def _outputs(request: str, sources: Mapping[str, str]) -> tuple[OutputExample, ...]:
    found = {
        path: output_examples(request, path, text) for path, text in sources.items() if not is_test(path)
    }
    meant = [examples for examples in found.values() if examples]
    return meant[0] if len(meant) == 1 else ()


def _passed_before(name: str, evidence_id: str) -> CheckResult:
    path, detail = name.partition("::")[0], f"passed in [{evidence_id}], and no file has changed since"
    return CheckResult(kind="test", name=name, state="passed", detail=detail, path=path, binding=True)


def _failed_before(failed: CheckResult) -> CheckResult:
    return replace(failed, before=True, binding=False, detail=f"{_BEFORE}\n{failed.detail}")


def _parsed(path: str, text: str) -> CheckResult:
    fact = look_at(path, text.encode("utf-8", "surrogatepass"))
    return CheckResult(
        kind="diagnostic",
        name=f"{PARSING}{path}",
        state="passed" if fact.good else "failed",
        detail="" if fact.good else cut(fact.detail, _DETAIL),
        path=path,
        binding=True,
    )
