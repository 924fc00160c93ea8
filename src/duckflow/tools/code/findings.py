"""New findings: what edits broke, in the files themselves and in those that use what changed (O5).

A server first sees the earlier text of an edited file, so that its old findings are known. Files that use a
definition whose first lines the edit changes are looked at, too. All of this happens beside the work.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FOLDER, LINK, FileChange
from duckflow.domain.work.checks import CheckResult
from duckflow.safety.files.encoding import decode
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.code.answers import Diagnostic, DocumentSymbol
from duckflow.tools.code.documents import read_document
from duckflow.tools.code.questions import finding_line
from duckflow.tools.code.servers import CodeServers
from duckflow.tools.code.session import ServerSession
from duckflow.tools.editing.text_form import MARK

_MOMENT_S = 1.0
"""Seconds that an edit waits for the findings of a server that runs."""

_VERDICT_S = 15.0
_FINDINGS_S, _READY_S = 10.0, 30.0
_QUIET_S, _QUIET_AT_LAST_S = 0.1, 0.7
_CALL = "reportCallIssue"
_USERS_S = 20.0
_FILES, _SYMBOLS, _USERS, _NEAR = 20, 8, 8, 4
_LINES, _RESULTS, _ERROR, _WARNING = 10, 5, 1, 2

Key = tuple[int, str, str]


class _Edit(NamedTuple):
    path: str
    old: str | None
    """Text before the edit; None if there was no file, or no text."""
    created: bool


class NewFindings:
    """Collects what servers find in one request and did not find before. `content` returns kept contents."""

    def __init__(self, servers: CodeServers, content: Callable[[str], bytes | None]) -> None:
        self._servers = servers
        self._content = content
        self._request = ""
        self._before: dict[str, Counter[Key]] = {}
        self._now: dict[str, tuple[Diagnostic, ...]] = {}
        self._lines_before: dict[str, frozenset[str]] = {}
        """Lines of each edited file before the request, without white space around them."""
        self._told: set[tuple[str, Key]] = set()
        self._waiting: list[list[_Edit]] = []
        self._working: asyncio.Task[None] | None = None

    def begin_request(self, request_id: str) -> None:
        """Count findings from here on as new."""
        if request_id == self._request:
            return
        self._request = request_id
        self._before = {path: Counter(one.key for one in found) for path, found in self._now.items()}
        self._lines_before.clear()
        self._told.clear()

    async def after(self, changes: Sequence[FileChange]) -> str:
        """Take note of changes. Return new findings that the model has not seen, of these or earlier ones.

        While a server still looks, its findings may be those of an earlier text, so none are returned.
        """
        edits = await run_in_thread(self._read, changes) if changes else []
        if edits:
            for one in edits:
                self._lines_before.setdefault(one.path, _stripped((one.old or "").split("\n")))
            self._waiting.append(edits)
            servers = [self._servers.for_path(one.path) for one in edits]
            warm = all(one is not None and one.warm for one in servers)
            if self._working is None or self._working.done():
                self._working = asyncio.create_task(self._work())
            if warm:
                await asyncio.wait([self._working], timeout=_MOMENT_S)
        return self._news() if self._working is None or self._working.done() else ""

    async def left(self) -> tuple[CheckResult, ...]:
        """Return the new errors that are still there, as checks that failed."""
        if self._working is not None:
            await asyncio.wait([self._working], timeout=_VERDICT_S)
        broken = [path for path in self._now if self._new(path, _ERROR)]
        for server, paths in self._servers.grouped(broken):
            try:
                async with asyncio.timeout(_VERDICT_S), server.use() as session:
                    await self._look_again(session, paths)
            except (TimeoutError, ToolError):
                continue
        found = ((path, self._new(path, _ERROR)) for path in broken)
        left = [(path, errors) for path, errors in found if errors][:_RESULTS]
        return tuple([self._result(path, errors, await self._kept_lines(path)) for path, errors in left])

    async def aclose(self) -> None:
        """Stop looking."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])

    def _read(self, changes: Iterable[FileChange]) -> list[_Edit]:
        edits: dict[str, _Edit] = {}
        for change in changes:
            known = self._servers.for_path(change.path)
            text_after = change.after not in (None, FOLDER) and not str(change.after).startswith(LINK)
            if known is None or change.ignored or not text_after:
                continue
            first = edits.get(change.path)
            edits[change.path] = first or _Edit(change.path, self._old(change), change.before is None)
        return list(edits.values())[:_FILES]

    def _old(self, change: FileChange) -> str | None:
        data = self._content(change.before) if change.before else None
        try:
            return decode(change.path, data).text.removeprefix(MARK) if data is not None else None
        except ToolError:
            return None

    async def _work(self) -> None:
        while self._waiting:
            edits = self._waiting.pop(0)
            by_path = {one.path: one for one in edits}
            for server, paths in self._servers.grouped(by_path):
                try:
                    async with server.use() as session:
                        await self._compare(session, [by_path[path] for path in paths])
                except ToolError:
                    continue  # a server that fails must not disturb the work; the tools say why

    async def _compare(self, session: ServerSession, edits: Sequence[_Edit]) -> None:
        """Find what these edits broke, in their own files and then in those that use what they changed."""
        await session.ready(_READY_S)
        paths = [one.path for one in edits]
        users: dict[str, set[int]] = {}
        try:
            await _show_old(session, edits)
            for one in edits:
                for path, lines in (await self._users(session, one)).items():
                    users.setdefault(path, set()).update(lines)
            await self._note_before(session, [one.path for one in edits if one.old is not None])
        finally:
            for path in paths:
                session.release(path)
        for one in edits:
            if one.created:
                self._before.setdefault(one.path, Counter())
        others = [path for path in self._now if self._new(path, _WARNING) and path not in paths]
        await self._look_again(session, list(dict.fromkeys((*paths, *others))))
        for path in paths:
            users.pop(path, None)
        await self._compare_users(session, edits, users)

    async def _compare_users(
        self, session: ServerSession, edits: Sequence[_Edit], users: Mapping[str, set[int]]
    ) -> None:
        """Find new errors in files that use a changed definition, where they use it."""
        there = [path for path in list(users)[:_USERS] if await _opened(session, path)]
        if not there:
            return
        await session.resend(there)
        found = await session.diagnose(there, _USERS_S, _QUIET_AT_LAST_S)
        broken = [path for path in there if _has_errors_at(found[path], users[path])]
        if any(path not in self._before for path in broken):
            try:  # they may be as old as the use itself
                await _show_old(session, edits)
                await session.resend(broken)
                await self._note_before(session, broken)
            finally:
                for one in edits:
                    session.release(one.path)
            await session.sync()
        self._take({path: found[path] for path in there if path in self._before})

    async def _users(self, session: ServerSession, one: _Edit) -> Mapping[str, set[int]]:
        """Return the files that use definitions whose first lines the edit changes, with the lines."""
        if one.old is None:
            return {}
        new, _ = await run_in_thread(read_document, self._servers.workspace, one.path)
        changed = _changed(await session.symbols(one.path), one.old, new)
        found: dict[str, set[int]] = {}
        for symbol in changed[:_SYMBOLS]:
            for place in await session.references(one.path, symbol.place.position):
                if not place.outside:
                    found.setdefault(place.path, set()).add(place.line)
        return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))  # a single use is often the import

    async def _note_before(self, session: ServerSession, paths: Iterable[str]) -> None:
        unknown = [path for path in paths if path not in self._before]
        if not unknown:
            return
        found = await session.diagnose(unknown, _FINDINGS_S, _QUIET_S)
        for path in unknown:
            said = found[path]
            if said is not None:  # otherwise nothing in this file counts as new
                self._before[path] = Counter(one.key for one in said)
                self._now.setdefault(path, said)

    async def _look_again(self, session: ServerSession, paths: Sequence[str]) -> None:
        await session.sync()
        there = [path for path in paths if await _opened(session, path)]
        for path in set(paths) - set(there):
            self._now.pop(path, None)
        await session.resend(path for path in there if path in self._now)
        self._take(await session.diagnose(there, _FINDINGS_S, _QUIET_AT_LAST_S))

    def _take(self, found: Mapping[str, tuple[Diagnostic, ...] | None]) -> None:
        for path, said in found.items():
            if said is not None:
                self._now[path] = said

    def _new(self, path: str, severity: int) -> list[Diagnostic]:
        """Return the findings of a file that it did not have before the request."""
        if path not in self._before:
            return []
        left = Counter(self._before[path])
        new: list[Diagnostic] = []
        for one in self._now.get(path, ()):
            left[one.key] -= 1
            if left[one.key] < 0 and one.severity <= severity:
                new.append(one)
        return new

    def _news(self) -> str:
        new = [one for path in self._now for one in self._new(path, _WARNING)]
        self._told &= {(one.path, one.key) for one in new}
        untold = [one for one in new if (one.path, one.key) not in self._told]
        if not untold:
            return ""
        self._told |= {(one.path, one.key) for one in untold}
        untold.sort(key=lambda one: one.severity)
        lines = [finding_line(one) for one in untold[:_LINES]]
        more = len(untold) - len(lines)
        lines += [f"… {more} more; code.diagnostics lists those of a file"] if more else []
        return "\n".join(["New since this request began:", *lines])

    async def _kept_lines(self, path: str) -> frozenset[int]:
        """Return the numbers of the lines of an edited file that stood there before the request."""
        before = self._lines_before.get(path)
        if not before:
            return frozenset()
        try:
            text, _ = await run_in_thread(read_document, self._servers.workspace, path)
        except ToolError:
            return frozenset()
        return frozenset(at for at, one in enumerate(text.split("\n"), 1) if one.strip() in before)

    def _result(self, path: str, errors: Sequence[Diagnostic], kept: Collection[int]) -> CheckResult:
        server = self._servers.for_path(path)
        sure = server.sure if server else ()
        left_behind = path not in self._lines_before
        # In a file that was edited, an error may come from a package that is not installed here, and one in
        # a new line may be a type that the server only guesses: running the code tells. A call that stood
        # there before no longer fits what the request changed.
        certain = (
            (left_behind and (sure is None or one.code in sure)) or (one.code == _CALL and one.line in kept)
            for one in errors
        )
        why = "this file uses what the request changed, and was not adapted\n" if left_behind else ""
        return CheckResult(
            kind="diagnostic",
            name=server.name if server else "language server",
            state="failed",
            detail=why + "\n".join(finding_line(one) for one in errors[:_LINES]),
            path=path,
            binding=any(certain),
        )


async def _show_old(session: ServerSession, edits: Iterable[_Edit]) -> None:
    for one in edits:
        if one.old is not None:
            await session.show(one.path, one.old)


def _stripped(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str.strip, lines))


def _has_errors_at(found: Sequence[Diagnostic] | None, lines: Iterable[int]) -> bool:
    near = {line + more for line in lines for more in range(_NEAR)}
    return any(one.severity <= _WARNING and one.line in near for one in found or ())


async def _opened(session: ServerSession, path: str) -> bool:
    try:
        await session.show(path)
    except ToolError:
        return False  # removed, or no text
    return True


def _changed(symbols: Sequence[DocumentSymbol], old: str, new: str) -> list[DocumentSymbol]:
    """Return the definitions whose first lines the new text no longer has."""
    lines, there = old.split("\n"), Counter(map(str.strip, new.split("\n")))
    changed: list[DocumentSymbol] = []
    for symbol in symbols:
        place = symbol.place
        at = int(place.position["line"])
        if not symbol.inside_function and not all(there[one] for one in _head(lines, at, place.end_line)):
            changed.append(symbol)
    return changed


def _head(lines: Sequence[str], at: int, end: int) -> list[str]:
    """Return the lines of a definition from its name to the end of its parameters."""
    depth, head = 0, list[str]()
    for line in lines[at : min(end, at + _LINES)]:
        head.append(line.strip())
        depth += sum(line.count(one) for one in "([") - sum(line.count(one) for one in ")]")
        if depth <= 0:
            break
    return head
