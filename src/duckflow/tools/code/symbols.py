"""Finds the place that a model means by a name: by the server's list of definitions, or by a use of it."""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.code.answers import Place
from duckflow.tools.code.positions import words
from duckflow.tools.code.session import ServerSession
from duckflow.tools.searching.hits import Hits
from duckflow.tools.searching.search import Search, find_lines

MOST_PLACES = 10
_FILES, _USES = 12, 3
_SYMBOL = lazy_regex(r"\w+(?:(?:\.|::|#|->)\w+)*")
_WORDS = lazy_regex(r"\w+")
_LINE = lazy_regex(r"(.+?):(\d+)(?::\d+)?")
_IMPORT = lazy_regex(r"\s*(?:from|import|use|#include|export \{)\b")
_BEFORE = (
    "def|class|function|func|fn|type|interface|struct|enum|trait|const|static|let|var|val|mod|module|"
    "namespace|union|define|typedef|macro_rules!"
)


class Target(NamedTuple):
    """A name as the model gave it, with what it is in, and perhaps a file and a line."""

    name: str
    parents: tuple[str, ...]
    path: str = ""
    line: int = 0


class FoundSymbol(NamedTuple):
    """A definition, and a place in the workspace where the server can be asked about it."""

    path: str
    position: dict[str, Any]
    place: Place
    names: tuple[str, ...] = ()


def read_target(workspace: Workspace, symbol: str, path: str | None) -> Target:
    """Return what a model means by a symbol such as `Class.method` and a path such as `a.py:12`."""
    said = symbol.strip().removesuffix("()")
    if not _SYMBOL.fullmatch(said):
        raise ToolError(f"{symbol[:100]}: is no name; write a name such as run, or Class.run.")
    *parents, name = _WORDS.findall(said)
    if not path:
        return Target(name, tuple(parents))
    found = _LINE.fullmatch(path)
    file, line = (found[1], int(found[2])) if found else (path, 0)
    return Target(name, tuple(parents), workspace.relative(file), line)


async def defining_lines(
    workspace: Workspace, ripgrep: Path | None, target: Target, suffixes: Iterable[str]
) -> AsyncIterator[Hits]:
    """Yield the lines that look like a definition of a name, first those that certainly do, then uses."""
    name = target.name
    certain = rf"\b(?:{_BEFORE})(?:\s*\([^)]*\))?\s+[*&]*{name}\b"
    likely = (
        rf"^\s*(?:export\s+)?{name}\s*(?::[^=]+)?=[^=]"
        rf"|^\s*(?:[\w*&<>:,\[\]]+\s+)*[*&]*(?:\w+::)*{name}\s*[(<]"
    )
    for pattern in (certain, likely, rf"\b{name}\b"):
        found = await _search(workspace, ripgrep, pattern, target, suffixes)
        if found.files:
            yield found


async def lines_with(
    workspace: Workspace, ripgrep: Path | None, target: Target, suffixes: Iterable[str]
) -> Hits:
    """Return the lines with a name."""
    return await _search(workspace, ripgrep, rf"\b{target.name}\b", target, suffixes)


async def _search(
    workspace: Workspace, ripgrep: Path | None, pattern: str, target: Target, suffixes: Iterable[str]
) -> Hits:
    ends = ",".join(sorted(one.removeprefix(".") for one in suffixes))
    asked = Search(pattern=pattern, path=target.path or ".", glob=f"*.{{{ends}}}" if ends else None)
    return await find_lines(workspace, ripgrep, asked)


def meant(found: Sequence[FoundSymbol]) -> list[FoundSymbol]:
    """Return the outermost definitions, because a name without a class is not a method of one."""
    outermost = min((len(one.names) for one in found), default=0)
    return [one for one in found if len(one.names) == outermost]


async def find_symbol(session: ServerSession, target: Target, files: Sequence[str]) -> list[FoundSymbol]:
    """Return the definitions of a name. `files` are those that may define it, the likeliest first."""
    if target.line:
        return await _at_line(session, target)
    found: list[tuple[bool, FoundSymbol]] = []
    for path in files[:_FILES]:
        for symbol in await session.symbols(path):
            place = symbol.place
            if symbol.names[-1] != target.name or not _fits(path, symbol.names, target.parents):
                continue
            if not _IMPORT.match(await _line_of(session, path, place.line)):
                one = FoundSymbol(path, place.position, place, symbol.names)
                found.append((symbol.inside_function, one))
    outer = [one for inside, one in found if not inside]
    if found:
        return outer or [one for _, one in found]
    for path in files[:_FILES]:
        if used := await _by_use(session, target, path):
            return used
    return []


async def _line_of(session: ServerSession, path: str, line: int) -> str:
    return (await session.read(path)).line_text(line - 1)


async def _at_line(session: ServerSession, target: Target) -> list[FoundSymbol]:
    text = await session.read(target.path)
    line = target.line - 1
    columns = words(text.line_text(line), target.name)
    if not columns:
        raise ToolError(f"{target.path}: line {target.line} has no {target.name}.")
    position = text.position(text.line_span(line).start + columns[0])
    return await _from(session, target.path, position)


async def _by_use(session: ServerSession, target: Target, path: str) -> list[FoundSymbol]:
    text = await session.read(path)
    for index in words(text.text, target.name)[:_USES]:
        if found := await _from(session, path, text.position(index)):
            return found
    return []


async def _from(session: ServerSession, path: str, position: dict[str, Any]) -> list[FoundSymbol]:
    found: list[FoundSymbol] = []
    for place in await session.definitions(path, position):
        known = [] if place.outside else await session.symbols(place.path)
        same = [one for one in known if one.place.position["line"] == place.position["line"]]
        whole = FoundSymbol(path, position, same[0].place, same[0].names) if same else None
        found.append(whole or FoundSymbol(path, position, place))
    return found


def _fits(path: str, names: Sequence[str], parents: Sequence[str]) -> bool:
    """Return whether a definition is in what the model named: classes, modules or folders."""
    around = [*_WORDS.findall(str(PurePosixPath(path).with_suffix(""))), *names[:-1]]
    return not parents or list(parents) == around[-len(parents) :]


def named(found: FoundSymbol) -> str:
    """Return a definition in a few words, such as `Class.run (src/a.py:12)`."""
    return f"{'.'.join(found.names) or 'defined'} ({found.place.path}:{found.place.line})"
