"""A notebook as its JSON text. Changes replace only the text of the cells they concern (L9)."""

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any, Literal, NamedTuple, cast

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex

CellKind = Literal["code", "markdown", "raw"]
Json = dict[str, Any]

_SPACE = lazy_regex(r"[ \t\r\n]*")
_INDENT = lazy_regex(r'^([ \t]+)"(?:cells|metadata|nbformat)"', re.MULTILINE)
_DECODER = json.JSONDecoder()


class _Value(NamedTuple):
    value: Any
    start: int
    end: int


class Notebook:
    """A notebook of format 4. Its cells are numbered from 1."""

    def __init__(self, text: str) -> None:
        """Raise ToolError if the text is no such notebook."""
        self.text = text
        try:
            top = dict(_members(text, _skip(text, 1 if text.startswith("\ufeff") else 0)))
            if (version := top["nbformat"].value) != 4:
                raise ToolError(
                    f"it is a notebook of format {version}, but only format 4 can be read. "
                    "Convert it first: jupyter nbconvert --to notebook --nbformat 4"
                )
            cells = top["cells"]
            self._list = cells
            self._cells = tuple(_items(text, cells.start))
            self.form: Json = {key: one.value for key, one in top.items() if key != "cells"}
            self.cells: tuple[Json, ...] = tuple(dict(one.value) for one in self._cells)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as exc:
            raise ToolError(f"it is no notebook that can be read ({exc})") from exc
        found = _INDENT.search(text)
        self._unit = found[1] if found else None

    def replaced(self, number: int, source: str, kind: CellKind | None) -> str:
        """Return the text with a cell's new source. Outputs of code that is replaced are removed."""
        place = self._place(number)
        cell = self.cells[place]
        if kind not in (None, cell.get("cell_type")):
            kept = {key: cell[key] for key in ("id", "metadata", "attachments") if key in cell}
            if kind == "code":
                kept.pop("attachments", None)
            return self._rebuilt([*self._texts(place), self._written(kind or "code", source, kept)], place)
        new: dict[str, object] = {"source": source_lines(source, cell.get("source"))}
        if cell.get("cell_type") == "code":
            new |= {"outputs": [], "execution_count": None}
        changed = self.text
        fields = dict(_members(self.text, self._cells[place].start))
        for key, one in sorted(fields.items(), key=lambda field: -field[1].start):
            if key in new and one.value != new[key]:
                written = self._dumped(new[key], 3)
                changed = changed[: one.start] + written + changed[one.end :]
        return changed

    def inserted(self, number: int, source: str, kind: CellKind) -> str:
        """Return the text with a new cell, which gets this number."""
        if not 1 <= number <= len(self.cells) + 1:
            raise self._no_cell(number, len(self.cells) + 1)
        named: Json = {"metadata": {}}
        if self.form.get("nbformat_minor", 0) >= 5:
            named = {"id": uuid.uuid4().hex[:8], **named}
        texts = [one for _, one in self._all()]
        texts.insert(number - 1, self._written(kind, source, named))
        return self._joined(texts)

    def deleted(self, number: int) -> str:
        """Return the text without a cell."""
        place = self._place(number)
        return self._joined([text for at, text in self._all() if at != place])

    def moved(self, number: int, to: int) -> str:
        """Return the text with a cell at another place, where it gets the number `to`."""
        texts = [one for _, one in self._all()]
        place, target = self._place(number), self._place(to)
        texts.insert(target, texts.pop(place))
        return self._joined(texts)

    def _place(self, number: int) -> int:
        if not 1 <= number <= len(self.cells):
            raise self._no_cell(number, len(self.cells))
        return number - 1

    def _no_cell(self, number: int, most: int) -> ToolError:
        return ToolError(
            f"there is no cell {number}: the notebook has {len(self.cells)}, so 1 to {most} is possible"
        )

    def _all(self) -> Iterator[tuple[int, str]]:
        for place, one in enumerate(self._cells):
            yield place, self.text[one.start : one.end]

    def _texts(self, without: int) -> list[str]:
        return [text for place, text in self._all() if place != without]

    def _rebuilt(self, texts: list[str], place: int) -> str:
        texts.insert(place, texts.pop())
        return self._joined(texts)

    def _joined(self, texts: Sequence[str]) -> str:
        before, after = self.text[: self._list.start + 1], self.text[self._list.end - 1 :]
        if not texts:
            return before + after
        line = "" if self._unit is None else self._line + self._unit * 2
        lead, tail = line, "" if self._unit is None else self._line + self._unit
        between = f",{line or ' '}"
        if self._cells:
            lead = self.text[self._list.start + 1 : self._cells[0].start]
            tail = self.text[self._cells[-1].end : self._list.end - 1]
        if len(self._cells) > 1:
            between = self.text[self._cells[0].end : self._cells[1].start]
        return before + lead + between.join(texts) + tail + after

    @property
    def _line(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _written(self, kind: CellKind, source: str, kept: Json) -> str:
        cell: Json = {"cell_type": kind, **kept, "source": source_lines(source, [])}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        return self._dumped(dict(sorted(cell.items())), 2)

    def _dumped(self, value: object, depth: int) -> str:
        ascii_only = self.text.isascii() and "\\u" in self.text
        if self._unit is None:
            return json.dumps(value, ensure_ascii=ascii_only)
        shown = json.dumps(value, ensure_ascii=ascii_only, indent=self._unit)
        return shown.replace("\n", self._line + self._unit * depth)


def source_lines(source: str, old: object) -> str | list[str]:
    """Return a source in the form that the old one has: one text, or a list of lines."""
    return source if isinstance(old, str) else list(StringIO(source, newline="\n"))


def joined(value: object) -> str:
    """Return a text that may be stored as a list of lines."""
    return "".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> _Value:
    start = _skip(text, at)
    value, end = _DECODER.raw_decode(text, start)
    return _Value(value, start, end)


def _members(text: str, at: int) -> Iterator[tuple[str, _Value]]:
    """Yield the members of the object that begins at `at`."""
    if text[at] != "{":
        raise ValueError("an object is missing")
    at = _skip(text, at + 1)
    while text[at] != "}":
        if text[at] != '"':
            raise ValueError("a name is missing")
        key = _value(text, at)
        at = _skip(text, key.end)
        if text[at] != ":":
            raise ValueError("a colon is missing")
        one = _value(text, at + 1)
        yield key.value, one
        at = _skip(text, one.end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _items(text: str, at: int) -> Iterator[_Value]:
    """Yield the items of the list that begins at `at`."""
    if text[at] != "[":
        raise ValueError("a list is missing")
    at = _skip(text, at + 1)
    while text[at] != "]":
        one = _value(text, at)
        yield one
        at = _skip(text, one.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
