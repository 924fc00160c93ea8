"""Answers to code.definition, code.references, code.rename and code.diagnostics (O5)."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.text import cut, some_of
from duckflow.prompts.shortening import fair_shares
from duckflow.safety.files.access import Access
from duckflow.safety.policy.protected import STRENGTH
from duckflow.safety.redaction.patterns import lines_with_secrets
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import ToolResult
from duckflow.tools.code.answers import Diagnostic, Place
from duckflow.tools.code.arguments import APPLY, ApplyRename, CheckFile, FindName, Rename
from duckflow.tools.code.renaming import misread_files, plan_rename
from duckflow.tools.code.servers import CodeServers, LanguageServer
from duckflow.tools.code.session import ServerSession
from duckflow.tools.code.symbols import (
    MOST_PLACES,
    FoundSymbol,
    Target,
    defining_lines,
    find_symbol,
    lines_with,
    meant,
    named,
    read_target,
)
from duckflow.tools.editing.text_form import plain
from duckflow.tools.files.reading import ReadFile, excerpt_of
from duckflow.tools.outline.outline import languages
from duckflow.tools.searching.hits import COLUMNS_SHOWN, Hits, show_hits

_WITHHELD = "(a line with a key or token)"
_LINES, _SHOWN = 40, 3
_USE_FILES, _USE_LINES = 40, 120
"""Numbers of files and lines to show of the uses of a name. Of the rest, files are counted."""

_READY_S = 30.0
_FINDINGS_S = 10.0
_MOST_FINDINGS = 50
_SEVERITY = {1: "error", 2: "warning", 3: "information", 4: "hint"}


class _Located(NamedTuple):
    """A name that was found, with its place and the server that knows it, or `why` there is no server."""

    found: list[FoundSymbol]
    server: LanguageServer | None
    why: str = ""


class CodeQuestions:
    """Answers questions about names, with a server if there is one, else by searching the text."""

    def __init__(self, servers: CodeServers, ripgrep: Path | None) -> None:
        self._servers = servers
        self._workspace = servers.workspace
        self._ripgrep = ripgrep

    async def definition(self, args: FindName, _access: Access) -> ToolResult:
        """Return where a name is defined, with the code."""
        target = read_target(self._workspace, args.symbol, args.path)
        located = await self._locate(target)
        if located.server is None:
            hits = await self._defined_in_text(target)
            return await self._by_text(hits, f"no line looks like a definition of {target.name}", located.why)
        places = [one.place for one in located.found]
        if not places:
            raise ToolError(_unknown(target, located.server))
        parts = [await run_in_thread(self._show, one) for one in places[:_SHOWN]]
        more = [f"{one.path}:{one.line}" for one in places[_SHOWN:]]
        parts += [f"Also defined in: {some_of(more, MOST_PLACES)}"] if more else []
        return ToolResult(text="\n".join(parts))

    async def references(self, args: FindName, _access: Access) -> ToolResult:
        """Return the uses of a name."""
        target = read_target(self._workspace, args.symbol, args.path)
        located = await self._locate(target)
        if located.server is None:
            hits = await lines_with(self._workspace, self._ripgrep, target, self._kinds())
            return await self._by_text(hits, f"no line has {target.name}", located.why)
        try:
            async with located.server.use() as session:
                one, uses = await self._only(session, target, located)
                places = await session.references(one.path, one.position) if uses is None else uses
        except ToolError as error:
            if located.server.warm:
                raise
            hits = await lines_with(self._workspace, self._ripgrep, target, self._kinds())
            return await self._by_text(hits, f"no line has {target.name}", str(error).rstrip("."))
        inside = [one for one in places if not one.outside]
        outside = len(places) - len(inside)
        note = f" ({outside} more outside the folder)" if outside else ""
        count = len({one.path for one in inside})
        files = f"{count} file{'s' * (count != 1)}"
        head = f"{len(inside)} references in {files}, as {located.server.name} knows them{note}"
        return ToolResult(text=f"{head}\n{await run_in_thread(self._lines, inside)}".rstrip())

    async def rename(self, args: Rename, _access: Access) -> ToolResult:
        """Work out a rename. The change itself is the next action, which is judged like any other."""
        target = read_target(self._workspace, args.symbol, args.path)
        located = await self._locate(target)
        if located.server is None:
            raise ToolError(
                f"{located.why}, so nothing was renamed. Find its uses with code.references, and change them "
                "with file_ops.edit_file."
            )
        names = target.name, args.to
        async with located.server.use() as session:
            one, _ = await self._only(session, target, located)
            files = await self._plan(session, one, names)
        if not files:
            raise ToolError(f"{located.server.name} would change nothing by this rename.")
        change = ApplyRename(symbol=args.symbol, to=args.to, files=files)
        places = sum(len(one.replacements) for one in files)
        what = f"{places} places in {len(files)} files: {some_of((one.path for one in files), MOST_PLACES)}"
        why = f"rename {args.symbol} to {args.to}: {what}"
        then = Action(operation=APPLY, args=change.model_dump(mode="json"), reasoning=why)
        return ToolResult(text=f"To {why}. This change comes next.", then=(then,))

    async def diagnostics(self, args: CheckFile, _access: Access) -> ToolResult:
        """Return what a server finds in a file."""
        path = self._workspace.relative(args.path)
        server = self._servers.for_path(path)
        if server is None:
            why = self._servers.problem_for(path)
            raise ToolError(f"{why}. Run the project's own checks with shell.run.")
        async with server.use() as session:
            await session.sync()
            await session.show(path)
            await session.ready(_READY_S)
            found = (await session.diagnose([path], _FINDINGS_S))[path]
        if found is None:
            return ToolResult(text=f"{server.name} reported nothing about {path} in {_FINDINGS_S:g} s.")
        if not found:
            return ToolResult(text=f"{server.name} finds nothing wrong in {path}.", path=path)
        lines = [finding_line(one) for one in found[:_MOST_FINDINGS]]
        more = len(found) - len(lines)
        lines += [f"… {more} more"] if more else []
        return ToolResult(text="\n".join([f"{len(found)} findings of {server.name}", *lines]), path=path)

    async def _plan(self, session: ServerSession, one: FoundSymbol, names: tuple[str, str]) -> Any:  # noqa: ANN401
        edit = await session.rename_edit(one.path, one.position, names[1])
        if misread := await run_in_thread(misread_files, session, self._workspace, edit):
            for path in misread:
                await session.show(path)
            edit = await session.rename_edit(one.path, one.position, names[1])
        return await plan_rename(session, self._workspace, edit, names)

    async def _only(
        self, session: ServerSession, target: Target, located: _Located
    ) -> tuple[FoundSymbol, list[Place] | None]:
        """Return the one definition that was found, and its uses if it took them to know that it is one."""
        assert located.server is not None
        if not located.found:
            raise ToolError(_unknown(target, located.server))
        await session.ready(_READY_S)
        found = meant(located.found)
        places = {(one.place.path, one.place.line) for one in found}
        if len(places) == 1:
            return found[0], None
        # They are one if each is among the uses of the first, as a declaration in a header and its body.
        uses = await session.references(found[0].path, found[0].position)
        if not places <= {(one.path, one.line) for one in uses}:
            listed = some_of(map(named, found), MOST_PLACES)
            raise ToolError(f"There are several {target.name}: {listed}. Name one as path, as a.py:12.")
        return found[0], uses

    async def _locate(self, target: Target) -> _Located:
        """Find a name with the servers for the files that may define it, the likeliest files first."""
        if target.path:
            return await self._in_files(target, [target.path])
        located, looked = _Located([], None, self._servers.problem_for("")), set[str]()
        if not self._servers.suffixes:
            return located
        async for hits in defining_lines(self._workspace, self._ripgrep, target, self._servers.suffixes):
            files = [path for path in hits.files if path not in looked]
            looked.update(files)
            located = await self._in_files(target, files) if files else located
            if located.found or located.server is None:
                return located
        if not looked:
            raise ToolError(f"{target.name}: no file has this name.")
        return located

    async def _in_files(self, target: Target, files: Sequence[str]) -> _Located:
        why = self._servers.problem_for(files[0])
        last: LanguageServer | None = None
        tried: set[str] = set()
        # Once a server can't be started, the next one that is installed takes its place.
        while groups := [one for one in self._servers.grouped(files) if one[0].name not in tried]:
            for server, paths in groups:
                tried.add(server.name)
                try:
                    async with server.use() as session:
                        await session.sync()
                        found = await find_symbol(session, target, paths)
                except ToolError as error:
                    if server.warm:
                        raise
                    why = str(error).rstrip(".")
                    continue
                last = server
                if found:
                    return _Located(found, server)
        return _Located([], last, why)

    async def _defined_in_text(self, target: Target) -> Hits:
        async for hits in defining_lines(self._workspace, self._ripgrep, target, self._kinds()):
            return hits
        return Hits({}, complete=True)

    def _kinds(self) -> Iterable[str]:
        return self._servers.suffixes | languages().keys()

    async def _by_text(self, hits: Hits, nothing: str, why: str) -> ToolResult:
        shown = await run_in_thread(show_hits, self._workspace, hits, STRENGTH["guarded"], 0)
        return ToolResult(text=f"({why}; this is a search of the text.)\n{shown or nothing}")

    def _show(self, place: Place) -> str:
        if place.outside or STRENGTH[self._workspace.protection(place.path)] > STRENGTH["guarded"]:
            return f"{place.path}:{place.line} (outside the folder)"
        last = min(max(place.end_line, place.line), place.line + _LINES - 1)
        lines = ReadFile(path=place.path, start=place.line, end=last)
        return excerpt_of(place.path, self._workspace.read_encoded(place.path), lines)

    def _lines(self, places: Sequence[Place]) -> str:
        """Return the lines of these places by file, as many as fit."""
        ordered = sorted(places, key=lambda one: (one.path, one.line))
        files = {
            path: list(dict.fromkeys(one.line for one in group))
            for path, group in groupby(ordered, key=lambda one: one.path)
        }
        shown = list(files)[:_USE_FILES]
        shares = fair_shares([len(files[path]) for path in shown], _USE_LINES)
        rows: list[str] = []
        for path, share in zip(shown, shares, strict=True):
            rows += self._rows(path, files[path], max(share, 1))
        rest = [f"{path} ({len(files[path])})" for path in list(files)[_USE_FILES:]]
        rows += [f"Not shown, {len(rest)} more files: {some_of(rest, MOST_PLACES)}"] if rest else []
        cut_short = rest or any(map(operator.lt, shares, (len(files[path]) for path in shown)))
        rows += (
            ["file_ops.search with path shows the lines with the name in a file or folder."]
            if cut_short
            else []
        )
        return "\n".join(rows)

    def _rows(self, path: str, numbers: Sequence[int], share: int) -> Iterator[str]:
        yield f"{path} ({len(numbers)} line{'s' * (len(numbers) != 1)})"
        workspace = self._workspace
        try:
            closed = STRENGTH[workspace.protection(path)] > STRENGTH["guarded"]
            lines = [] if closed else plain(workspace.read_text(path)).split("\n")
        except ToolError:
            lines = []  # removed meanwhile
        for number in numbers[:share]:
            line = lines[number - 1] if number <= len(lines) else ""
            yield f"{number}: {_WITHHELD if lines_with_secrets(line) else cut(line.rstrip(), COLUMNS_SHOWN)}"
        if len(numbers) > share:
            yield f"… lines {some_of(map(str, numbers[share:]), MOST_PLACES)}"


def finding_line(one: Diagnostic) -> str:
    """Return a finding in one line."""
    code = f" [{one.code}]" if one.code else ""
    return f"{one.path}:{one.line}: {_SEVERITY.get(one.severity, 'error')}: {one.message}{code}"


def _unknown(target: Target, server: LanguageServer) -> str:
    where = f" in {target.path}" if target.path else ""
    full = ".".join((*target.parents, target.name))
    return f"{server.name} knows no definition of {full}{where}. Search for it with file_ops.search."
