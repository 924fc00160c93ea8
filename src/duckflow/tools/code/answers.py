"""Reads the answers of servers: places, definitions in a file, findings. Parts without sense are left out."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, cast

from duckflow.tools.code.documents import outside_path, path_of
from duckflow.tools.code.positions import TextPositions
from duckflow.tools.code.wire import Json, JsonValue

_FUNCTIONS = (6, 9, 12)
"""The protocol's numbers for methods, constructors and functions."""

_LONGEST_MESSAGE = 400
_NAME = re.compile(r"\w+")
_FAULTS = (LookupError, TypeError, ValueError, OverflowError, AttributeError)


class Diagnostic(NamedTuple):
    """One finding of a server. `line` counts from 1; the lowest severity, 1, is an error."""

    path: str
    line: int
    severity: int
    message: str
    code: str = ""

    @property
    def key(self) -> tuple[int, str, str]:
        """The parts that stay the same when lines above it change."""
        return self.severity, self.code, self.message


class Place(NamedTuple):
    """A place in a file: lines from 1, and the position of its name as the server counts."""

    path: str
    line: int
    end_line: int
    position: Json
    outside: bool = False


class DocumentSymbol(NamedTuple):
    """A definition in a file. `names` are those of what it is in, then its own."""

    names: tuple[str, ...]
    place: Place
    inside_function: bool = False
    """True for a name that only the function around it knows."""


def dicts(value: JsonValue) -> list[Json]:
    """Return the objects of a list, or the object itself in a list."""
    listed = cast("list[JsonValue]", value if isinstance(value, list) else [value])
    return [cast("Json", one) for one in listed if isinstance(one, dict)]


def read_places(root: Path, found: JsonValue) -> list[Place]:
    """Return the places of an answer, each once."""
    places: dict[tuple[str, int, int], Place] = {}
    paths = cache(partial(path_of, root))  # many places lie in the same file
    for one in dicts(found):
        with suppress(*_FAULTS):
            uri = str(one.get("targetUri") or one["uri"])
            whole: Json = one.get("targetRange") or one["range"]
            exact: Json = one.get("targetSelectionRange") or one["range"]
            begin, path = exact["start"], paths(uri)
            first, last = _line(begin), _line(whole["end"])
            place = Place(path or outside_path(uri), first, last, begin, outside=path is None)
            if place.path:
                places[place.path, first, int(begin["character"])] = place
    return list(places.values())


def read_symbols(
    path: str,
    found: Sequence[Json],
    text: TextPositions,
    above: tuple[str, ...] = (),
    *,
    inside_function: bool = False,
) -> Iterator[DocumentSymbol]:
    """Yield the definitions in a file, in their order."""
    for one in found:
        with suppress(*_FAULTS):
            parts = tuple(_NAME.findall(str(one["name"])))
            if not parts:
                continue
            container = tuple(_NAME.findall(str(one.get("containerName") or "")))
            names = (*above, *container, *parts)
            whole: Json = one.get("range") or one["location"]["range"]
            exact: Json | None = one.get("selectionRange")
            if exact is None:  # the older form does not say where the name is
                span = text.span(whole)
                at = re.compile(rf"(?<!\w){re.escape(parts[-1])}(?!\w)").search(text.text, *span)
                exact = {"start": text.position(at.start() if at else span.start)}
            begin, end = _line(whole["start"]), _line(whole["end"])
            yield DocumentSymbol(names, Place(path, begin, end, exact["start"]), inside_function)
            inside = inside_function or one.get("kind") in _FUNCTIONS
            yield from read_symbols(path, dicts(one.get("children")), text, names, inside_function=inside)


def _line(position: Json) -> int:
    """Return the line of a position, from 1. Raise ValueError for one that no file has."""
    line = int(position["line"])
    if line < 0:
        raise ValueError(line)
    return line + 1


def read_diagnostics(root: Path, path: str, found: JsonValue) -> tuple[Diagnostic, ...]:
    """Return the findings on a file, errors first."""
    said: list[Diagnostic] = []
    for one in dicts(found):
        with suppress(*_FAULTS):
            line, message = _line(one["range"]["start"]), " ".join(str(one["message"]).split())
            message = message.replace(f"{root}/", "")
            severity, code = int(one.get("severity") or 1), one.get("code")
            code = "" if code is None or isinstance(code, dict) else str(code)
            said.append(Diagnostic(path, line, severity, message[:_LONGEST_MESSAGE], code))
    return tuple(sorted(said, key=lambda one: (one.severity, one.line)))
