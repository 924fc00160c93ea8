"""Replace passages that a model quotes. Either all edits of a call are made or none (N, edit_file)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen, replace
from duckflow.tools.editing.indentation import Indentation, indent_of
from duckflow.tools.editing.matching import (
    Span,
    collapse,
    content_lines,
    find_all,
    find_fragment,
    find_lines,
    line_of,
    nearest_text,
    show_lines,
    squeeze,
)
from duckflow.tools.editing.text_form import splice

_AMBIGUOUS_SHOWN, _LOOSE_SHOWN = 4, 8  # places
_LINES_SHOWN = 8
_LOOSE = "matched with white space ignored"
_TELLING_LINE, _TELLING_FRAGMENT = 4, 8  # letters; shorter texts may match by chance


class Edit(Frozen):
    """One change, of one place or of all."""

    find: str = Field(description="text that is in the file now, once; whole lines are safest")
    replace: str = Field(description="text to put in its place")
    all: bool = Field(default=False, description="whether to replace it in every place it is in")


class Edited(NamedTuple):
    """Text after the edits, and remarks about them."""

    text: str
    notes: tuple[str, ...]


class _Change(NamedTuple):
    span: Span
    new: str
    note: str = ""


class _Note(NamedTuple):
    """Remark about an edit, and the place of its new text if those lines are to be shown."""

    text: str
    place: Span | None = None


def apply_edits(text: str, edits: Sequence[Edit]) -> Edited:
    """Apply the edits one after the other, keeping line ends. `text` has no byte order mark."""
    notes: list[_Note] = []
    after = text
    for number, edit in enumerate(edits, 1):
        label = f"edit {number} of {len(edits)}" if len(edits) > 1 else "the edit"
        try:
            plain = replace(edit, find=_unix(edit.find), replace=_unix(edit.replace))
            found = _changes(_unix(after), plain)
        except ToolError as exc:
            raise exc.reworded(f"{label}: {exc}\nNothing was changed.") from exc
        changes = [change for change in found if change.new or change.span.start < change.span.end]
        after = splice(after, [(change.span, change.new) for change in changes])
        notes = [_moved(note, changes) for note in notes]
        notes += _notes(label, found, changes, edit)
    if text.endswith("\n") and after and not after.endswith("\n"):
        end = len(_unix(after))
        after = splice(after, [(Span(end, end), "\n")])
    return Edited(after, tuple(_shown(note, _unix(after)) for note in notes))


def _notes(label: str, found: list[_Change], changes: list[_Change], edit: Edit) -> Iterator[_Note]:
    if edit.all and changes:
        yield _Note(f"{label} was made in {len(changes)} place{'s' if len(changes) > 1 else ''}")
    yield from (_Note(f"{label} {one.note}") for one in found[:1] if one.note and not changes)
    grown = 0
    loose = 0
    for change in changes:
        start = change.span.start + grown
        grown += len(change.new) - (change.span.end - change.span.start)
        if change.note and loose < _LOOSE_SHOWN:
            loose += 1
            yield _Note(f"{label} {change.note}", Span(start, start + len(change.new)))


def _moved(note: _Note, changes: list[_Change]) -> _Note:
    if note.place is None:
        return note
    start, end = note.place
    for span, new, _ in changes:
        grown = len(new) - (span.end - span.start)
        start += grown if span.end <= note.place.start else 0
        end += grown if span.start < note.place.end else 0
    return _Note(note.text, Span(start, max(start, end)))


def _shown(note: _Note, text: str) -> str:
    if note.place is None:
        return note.text
    lines = text.split("\n")
    first = max(line_of(text, note.place.start) - 1, 1)
    last = min(line_of(text, note.place.end) + 1, len(lines))
    return f"{note.text}; the lines are now:\n{show_lines(lines[first - 1 : last], first)}"


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _changes(text: str, edit: Edit) -> list[_Change]:
    if not edit.find:
        raise ToolError(
            "find is empty. To add text, find the line next to it and repeat that line in replace; "
            "to fill an empty or new file, use write_file.",
            "reason.no_match",
        )
    if exact := find_all(text, edit.find, apart=edit.all):
        if all(_made(text, span, edit) for span in exact):
            return [_already(exact[0], text)]
        return [_Change(span, edit.replace) for span in _wanted(text, exact, edit)]
    return _loose_changes(text, edit)


def _loose_changes(text: str, edit: Edit) -> list[_Change]:
    for key in (collapse, squeeze):
        if spans := find_lines(text, edit.find, key):
            return [_replace_lines(text, span, edit) for span in _wanted(text, spans, edit)]
    if spans := find_fragment(text, edit.find):
        return [_replace_fragment(text, span, edit) for span in _wanted(text, spans, edit)]
    if there := _find_result(text, edit.replace):
        return [_already(there[0], text)]
    raise ToolError(_no_match(text, edit.find), "reason.no_match")


def _wanted(text: str, spans: list[Span], edit: Edit) -> list[Span]:
    """Return the places to change: the only one, or with `all` those that do not overlap."""
    if edit.all:
        return [one for at, one in enumerate(spans) if not at or one.start >= spans[at - 1].end]
    if len(spans) == 1:
        return spans
    numbers = ", ".join(str(line_of(text, span.start)) for span in spans[:_LINES_SHOWN])
    more = ", …" if len(spans) > _LINES_SHOWN else ""
    lines = text.split("\n")
    around = [_neighbours(lines, line_of(text, span.start)) for span in spans[:_AMBIGUOUS_SHOWN]]
    raise ToolError(
        f"find matches more than one place (lines {numbers}{more}):\n" + "\n…\n".join(around) + "\n"
        "Add lines around it to tell them apart, or replace all of them with all: true.",
        "reason.many_matches",
    )


def _neighbours(lines: list[str], number: int) -> str:
    first = max(number - 1, 1)
    return show_lines(lines[first - 1 : number + 1], first)


def _made(text: str, span: Span, edit: Edit) -> bool:
    """Return True if the replacement is already around the match, because the edit was made before."""
    for start, end in find_all(edit.replace, edit.find):
        added = edit.replace[:start] + edit.replace[end:]
        place = span.start - start
        if not added or place < 0 or not text.startswith(edit.replace, place):
            continue
        if added.strip() or ("\n" not in added and (place == 0 or text[place - 1] == "\n")):
            return True
    return False


def _find_result(text: str, replace: str) -> list[Span]:
    """Return places that contain the replacement already; empty if it is so short that this may be chance."""
    letters = len(squeeze(replace))
    if letters >= _TELLING_LINE and (spans := find_lines(text, replace, collapse)):
        return spans
    return find_all(text, replace) if letters >= _TELLING_FRAGMENT else []


def _already(span: Span, text: str) -> _Change:
    return _Change(Span(0, 0), "", f"was made already (line {line_of(text, span.start)})")


def _replace_lines(text: str, span: Span, edit: Edit) -> _Change:
    written, own = content_lines(edit.find), text[span.start : span.end].split("\n")
    kept = dict(zip(reversed(written), reversed(own), strict=True))
    if not edit.replace.strip():
        end = span.end + 1 if span.end < len(text) else span.end
        return _Change(Span(span.start, end), "", _LOOSE)
    lines = _same_margin(edit)
    indentation = Indentation(written, own)
    new = [kept.get(line, fresh) for line, fresh in zip(lines, indentation.translate(lines), strict=True)]
    return _loosely(text, span, "\n".join(new), edit)


def _same_margin(edit: Edit) -> list[str]:
    """Return the lines of `replace`, less as many blank lines at each end as `find` has there."""
    searched, lines = edit.find.split("\n"), edit.replace.split("\n")
    for end in (0, -1):
        while searched and lines and not searched[end].strip() and not lines[end].strip():
            searched.pop(end)
            lines.pop(end)
    return lines


def _replace_fragment(text: str, span: Span, edit: Edit) -> _Change:
    replace = edit.replace.strip() if edit.find != edit.find.strip() else edit.replace
    line_start = text.rfind("\n", 0, span.start) + 1
    written, own = content_lines(edit.find)[0], text[line_start:].split("\n", 1)[0]
    first, *rest = replace.split("\n")
    moved = Indentation([written], [own]) if text[line_start : span.start].strip() == "" else None
    lines = moved.translate(rest) if moved else rest
    new = "\n".join([first.removeprefix(indent_of(first)) if moved else first, *lines])
    return _loosely(text, span, new, edit)


def _loosely(text: str, span: Span, new: str, edit: Edit) -> _Change:
    """Return the change, or only a note if the new text is already at or around the place."""
    if text[span.start : span.end] == new:
        return _already(span, text)
    if squeeze(edit.find) in squeeze(new) and any(
        there.start <= span.start and span.end <= there.end for there in find_lines(text, new, squeeze)
    ):
        return _already(span, text)
    return _Change(span, new, _LOOSE)


def _no_match(text: str, find: str) -> str:
    if not text.strip():
        return "the text to find is nowhere: the file is empty; use write_file."
    near = nearest_text(text, find)
    if near is None:
        lines = line_of(text, len(text))
        return f"the text to find is nowhere, and nothing in the file ({lines} lines) is like it."
    return f"the text to find is nowhere. The nearest text is:\n{near}\nRepeat it exactly."
