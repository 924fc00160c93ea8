"""Checks by running: quick ones after an edit, thorough ones before a verdict (J10).

Everything runs in a copy. Checks that can't run are reported as not run, with the reason.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from duckflow.config.settings import CheckSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import replace
from duckflow.domain.text import cut
from duckflow.domain.work.checks import PARSING, CheckResult
from duckflow.evaluation.check_copies import CheckCopies, CheckCopy
from duckflow.evaluation.check_runs import (
    TimeLeft,
    diagnose,
    doctests_of,
    failing_tests,
    python_of,
    run_calls,
    run_script,
    run_test,
)
from duckflow.evaluation.diagnostics import CHECKERS, Checker, chosen, commands, configurations, known
from duckflow.evaluation.examples import (
    CallExample,
    OutputExample,
    call_examples,
    has_doctests,
    output_examples,
)
from duckflow.evaluation.facts import look_at, parsed_here
from duckflow.evaluation.known_tests import KnownRun, passed_in, python_used
from duckflow.evaluation.related_tests import (
    RelatedTest,
    is_test,
    left_out,
    likely_tests,
    named_tests,
    related_tests,
)

MOST_FILES = 20
"""Maximum changed files that are checked by running; the last ones count."""

_BEFORE = "it failed in the same way before the request changed anything"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_READ = 200_000
_DETAIL = 300


class _Work(NamedTuple):
    """Work to run before a verdict."""

    sources: Mapping[str, str]
    parsed: tuple[CheckResult, ...]
    calls: Mapping[str, tuple[CallExample, ...]]
    doctests: frozenset[str]
    outputs: tuple[OutputExample, ...]
    tests: tuple[RelatedTest, ...]
    known: tuple[CheckResult, ...]
    """Tests that a command of the model has just run successfully."""
    test_sources: Mapping[str, str]
    tools: tuple[Checker, ...]

    @property
    def anything(self) -> bool:
        """True if something has to run."""
        return bool(any(self.calls.values()) or self.doctests or self.outputs or self.tests or self.tools)

    def not_run(self, why: str) -> tuple[CheckResult, ...]:
        """Return the results if nothing can be run."""
        calls = [(one.name, one.path) for path in self.calls for one in self.calls[path]]
        examples = [*calls, *((one.name, one.path) for one in self.outputs)]
        return (
            *self.parsed,
            *self.known,
            *(CheckResult(kind="example", name=n, path=p, state="not_run", detail=why) for n, p in examples),
            *(CheckResult(kind="test", name=one.name, state="not_run", detail=why) for one in self.tests),
        )


class Checks:
    """Checks the work in one workspace. `find` returns the path of a program outside it, or None."""

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
        """Parse files that were just written and run quick tools on them; empty if none apply."""
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
            if not await self._copies.sandboxed():
                return ()
            async with self._copies.copy(near=fitting) as copy:
                return await self._diagnose(copy, tools, fitting, TimeLeft(self._settings.edit_timeout_s))
        except ToolError:
            return ()  # a check that can't run must not disturb the edit

    async def before_verdict(
        self,
        request: str,
        changed: Sequence[str],
        candidate: Mapping[str, str] | None = None,
        *,
        known: Sequence[KnownRun] = (),
        before: Mapping[str, str] = _NOTHING,
        commands: Sequence[str] = (),
    ) -> tuple[CheckResult, ...]:
        """Run examples, the tests of the changed files, and slower tools.

        `candidate`: content of files that are not written yet; they do not reach the workspace. `known`:
        commands that succeeded with the current files; tests that passed in one are not run again. `before`:
        the changed files before the request; tests that already failed in the same way do not count.
        `commands`: the request's commands so far; tests are started with the Python that these used for
        tests.
        """
        new = candidate or {}
        paths = tuple(dict.fromkeys([*changed, *new]))[-MOST_FILES:]
        if not self._settings.before_verdict or not paths:
            return ()
        work = await asyncio.to_thread(self._gather, request, paths, new, known)
        if not work.anything:
            return work.known
        python = python_used(commands, request) or python_of(self._find)
        try:
            if not await self._copies.sandboxed():
                return work.not_run("there is no sandbox here")
            async with self._copies.copy(changed=paths, files=new) as copy:
                results = await self._run(copy, work, python)
            return await self._compared(request, work, results, before, python) if before else results
        except ToolError as error:
            return work.not_run(cut(str(error), _DETAIL))

    async def of_draft(
        self, request: str, files: Mapping[str, str], command: str = ""
    ) -> tuple[CheckResult, ...]:
        """Run the same checks for files that are not written yet, and the verifying command with them."""
        results = await self.before_verdict(request, (), files)
        if not command:
            return results
        try:
            if not await self._copies.sandboxed():
                return results
            async with self._copies.copy(files=files) as copy:
                ended = await copy.run(command, seconds=TimeLeft(self._settings.verdict_timeout_s).next())
        except ToolError:
            return results
        state = "passed" if ended.exit_code == 0 else "failed"
        return (*results, CheckResult(kind="test", name=cut(command, _DETAIL), state=state, binding=True))

    async def aclose(self) -> None:
        """Close the copies."""
        await self._copies.aclose()

    async def _run(self, copy: CheckCopy, work: _Work, python: str) -> tuple[CheckResult, ...]:
        time = TimeLeft(self._settings.verdict_timeout_s)
        results: list[CheckResult] = [*work.parsed, *work.known]
        for path in work.sources:
            calls = work.calls.get(path, ())
            results += await run_calls(copy, path, calls, python, time, doctests=path in work.doctests)
        results += [await run_script(copy, output, python, time) for output in work.outputs]
        for test in work.tests:
            results.append(await run_test(copy, test, work.test_sources[test.path], python, time))
        results += await self._diagnose(copy, work.tools, tuple(work.sources), time)
        return tuple(results)

    async def _compared(
        self,
        request: str,
        work: _Work,
        results: tuple[CheckResult, ...],
        before: Mapping[str, str],
        python: str,
    ) -> tuple[CheckResult, ...]:
        """Mark what failed in the same way before the change. Only tests that the request names still bind.

        The same holds for what takes too long to compare.
        """
        named = {one.name for one in named_tests(request, [test.path for test in work.tests])}
        failed = {one.name for one in results if one.state == "failed"}
        tests = [one for one in work.tests if one.name in failed]
        tests = [one for one in tests if one.path in before or one.path not in work.sources]
        doctests = [path for path in work.doctests if path in before and doctests_of(path) in failed]
        if not tests and not doctests:
            return results
        time = TimeLeft(self._settings.verdict_timeout_s)
        sources = [work.test_sources[one.path] for one in tests]
        async with self._copies.copy(changed=work.sources) as copy:
            now = [await failing_tests(copy, *of, python, time) for of in zip(tests, sources, strict=True)]
        async with self._copies.copy(files=before) as copy:
            then = [await failing_tests(copy, *of, python, time) for of in zip(tests, sources, strict=True)]
            runs = [await run_calls(copy, path, (), python, time, doctests=True) for path in doctests]
        pairs = {one.name: (n, t) for one, n, t in zip(tests, now, then, strict=True)}
        old = {name for name, (n, t) in pairs.items() if n and t and n <= t}
        old |= {one.name for ran in runs for one in ran if one.state == "failed"}
        unknown = {name for name, pair in pairs.items() if None in pair}
        return tuple(_since_when(one, old, unknown, named) for one in results)

    async def _diagnose(
        self, copy: CheckCopy, tools: Iterable[Checker], paths: Sequence[str], time: TimeLeft
    ) -> tuple[CheckResult, ...]:
        results: list[CheckResult] = []
        for tool in tools:
            for command, files in commands(tool, paths, self._find):
                seconds = time.next()
                found = await diagnose(copy, tool, command, files, seconds) if seconds else None
                if found is not None:
                    results.append(found)
                if found is not None and found.state == "not_run":
                    self._unfit.add(tool.name)  # too slow here or broken: not tried again
        return tuple(results)

    def _top(self) -> dict[str, str]:
        """Return the configuration files of checkers in the workspace's top folder, with their text."""
        workspace = self._copies.workspace
        wanted = configurations(self._table)
        names = (entry.path for entry in workspace.list(".", depth=1, limit=500).entries)
        return {name: self._text(name) for name in names if name in wanted}

    def _parse(self, paths: Iterable[str]) -> tuple[CheckResult, ...]:
        """Parse these files."""
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
        whole = {one.path for one in named if not one.only}
        apart = {*whole, *left_out(request)}
        related = [one for one in related_tests(sources, files) if one.path not in apart]
        tests = (*named, *related)
        passed = {one.name: of for one in tests if (of := passed_in(one.path, known))}
        tests = tuple(one for one in tests if one.name not in passed)
        top = self._top()
        slow = chosen(sources, top, quick=False, table=self._table)
        quick = chosen(candidate, top, quick=True, table=self._table)
        return _Work(
            sources=sources,
            parsed=tuple(_parsed(path, text) for path, text in candidate.items()),
            calls={path: call_examples(request, path, text) for path, text in sources.items()},
            doctests=frozenset(path for path, text in sources.items() if _has_doctests(path, text)),
            outputs=_outputs(request, sources),
            tests=tests,
            known=tuple(_passed_before(name, of) for name, of in passed.items()),
            test_sources={one.path: sources.get(one.path) or self._text(one.path) for one in tests},
            tools=tuple(one for one in (*quick, *slow) if one.name not in self._unfit),
        )


def _since_when(
    result: CheckResult, old: Collection[str], unknown: Collection[str], named: Collection[str]
) -> CheckResult:
    """Return a failure with what is known of the time before the change."""
    if result.state != "failed":
        return result
    if result.name in old:
        binding = result.binding and result.name in named
        return replace(result, binding=binding, before=True, detail=f"{_BEFORE}\n{result.detail}")
    if result.name in unknown:
        return replace(result, binding=result.binding and result.name in named, compared=False)
    return result


def _outputs(request: str, sources: Mapping[str, str]) -> tuple[OutputExample, ...]:
    """Return the expected output of a script; () if several files could be meant."""
    found = {
        path: output_examples(request, path, text) for path, text in sources.items() if not is_test(path)
    }
    meant = [examples for examples in found.values() if examples]
    return meant[0] if len(meant) == 1 else ()


def _has_doctests(path: str, text: str) -> bool:
    return PurePosixPath(path).suffix == ".py" and has_doctests(text)


def _passed_before(name: str, evidence_id: str) -> CheckResult:
    """Return the result of tests that passed in a command after which no file changed."""
    path, detail = name.partition("::")[0], f"passed in [{evidence_id}], and no file has changed since"
    return CheckResult(kind="test", name=name, state="passed", detail=detail, path=path, binding=True)


def _parsed(path: str, text: str) -> CheckResult:
    """Parse a file that is not written yet."""
    fact = look_at(path, text.encode("utf-8", "surrogatepass"))
    return CheckResult(
        kind="diagnostic",
        name=f"{PARSING}{path}",
        state="passed" if fact.good else "failed",
        detail="" if fact.good else cut(fact.detail, _DETAIL),
        path=path,
        binding=True,
    )
