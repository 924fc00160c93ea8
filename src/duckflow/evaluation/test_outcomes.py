"""Finds out from the output of test runners that tests failed although the exit code is 0. Pure.

`pytest || true` and `make test; echo done` end well whatever the tests say. Output counts only if the command
runs a known test runner, and only lines in the exact form of a runner's summary, so that a search, a log or
"0 failed" raises no alarm.
"""

import re
from collections.abc import Iterator

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import one_line
from duckflow.safety.sandbox.pipelines import pipelines

_LINE = 120
_ANSI = lazy_regex(r"\x1b\[[0-9;]*[A-Za-z]")
_BEFORE = lazy_regex(
    r"(?:(?:!|do|then|else|elif|if|while|until|time|env|command|exec|sudo|nice|xvfb-run|npx|bunx|pnpx"
    r"|(?:uv|poetry|pipenv|pdm|hatch|rye|coverage) run(?: -m)?|bundle exec|timeout(?: -\S+)* \S+"
    r"|[A-Za-z_]\w*=\S*)\s+)*"
)
"""Words before the program that runs the tests."""
_RUNNER = lazy_regex(
    r"(?:\S*/)?(?:pytest|py\.test|jest|vitest|mocha|phpunit|rspec|ctest|tox|nox|runtests\.py"
    r"|python[\d.]*(?: -[BIPsu]| -[XW] ?\S+)* "
    r"(?:-m (?:pytest|unittest|tox|nox)|(?:\S*/)?manage\.py test|(?:\S*/)?runtests\.py)"
    r"|node (?:\S+ )*--test|cargo nextest|mvnw?|gradlew?"
    r"|(?:go|cargo|dotnet|mix|make|(?:npm|yarn|pnpm|bun)(?: run)?|deno)(?: -\S+)* (?:\S*test\S*|check))"
    r"(?=[\s;)]|$)"
)
_ELSEWHERE = lazy_regex(r"git (?:-C \S+ )?(?:stash|checkout|switch|restore|worktree)\b")
"""Commands that change which version is tested, so that a failure may be that of another one."""
_COUNT = r"\d+ [a-z]+(?: [a-z]+)?"
_FAILED = lazy_regex(
    rf"[= ]*(?:{_COUNT}, )*[1-9]\d* (?:failed|errors?)(?:, {_COUNT})* in \d[\d.]*s?\b.*"  # pytest
    r"|(?:FAILED|ERROR) \S+\.py(?:::\S.*)?"
    r"|FAILED \((?:[a-z ]+=\d+, )*(?:failures|errors|unexpected successes)=[1-9]\d*(?:, [a-z ]+=\d+)*\)"
    r"|\s*(?:Tests|Test Suites|Test Files):?\s+(?:\d+ [a-z]+(?:,| \|) )*[1-9]\d* failed\b.*"  # Jest, Vitest
    r"|\s*[1-9]\d* failing"  # Mocha
    r"|--- FAIL: \S+ \([\d.]+s\)|FAIL\t\S+.*"  # Go
    r"|test result: FAILED\. .*|\s*Summary \[.*\] .*\b[1-9]\d* failed\b.*"  # cargo
    r"|(?:#|ℹ) fail [1-9]\d*|not ok \d+(?!.*# (?:TODO|SKIP)).*"  # node, TAP
    r"|\d+% tests passed, [1-9]\d* tests? failed out of \d+"  # CTest
    r"|Tests: \d+, Assertions: \d+.*, (?:Errors|Failures): [1-9].*"  # PHPUnit
    r"|\d+ (?:examples?|doctests?|tests?)(?:, \d+ (?:tests?|properties))*, [1-9]\d* failures?\b.*"  # RSpec
    r"|Failed!\s+- Failed:\s+[1-9].*"  # dotnet
    r"|\[ERROR\] Tests run: \d+, (?:Failures: [1-9]|Failures: 0, Errors: [1-9]).*"  # Maven
    r"|\d+ tests? completed, [1-9]\d* failed.*"  # Gradle
    r"|FAILED \| \d+ passed .*\b[1-9]\d* failed\b.*|\s*[1-9]\d* fail"  # Deno, Bun
    r"|g?make(?:\[\d+\])?: \*\*\* \[.*\] Error \d+"
)


_GROUP = lazy_regex(r"\((?P<inner>.*)\)[^)]*|\{\s(?P<block>.*)\}[^}]*", re.DOTALL)
_SHELL = lazy_regex(
    r"(?:\S*/)?(?:ba|z|da)?sh -\w*c (?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\").*", re.DOTALL
)


def failed_tests(command: str, output: str) -> str:
    """Return the line in which a test runner of this command says that tests failed; empty if none does."""
    parts = [*_parts(command)]
    if not any(map(_RUNNER.match, parts)) or any(map(_ELSEWHERE.match, parts)):
        return ""
    lines = [_ANSI.sub("", line).rstrip() for line in output.splitlines()]
    return next((one_line(line.strip("= "), _LINE) for line in lines[::-1] if _FAILED.fullmatch(line)), "")


def _parts(command: str) -> Iterator[str]:
    """Yield the simple commands of a command line, without what stands before their program."""
    for part in (part for one in pipelines(command) for part in one):
        bare = part[_BEFORE.match(part).end() :]  # pyright: ignore[reportOptionalMemberAccess]
        if found := _GROUP.fullmatch(bare) or _SHELL.fullmatch(bare):
            yield from _parts(next(filter(None, found.groups()), ""))
        else:
            yield bare
