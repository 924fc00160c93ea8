"""Notebooks in words: cells with their numbers, and outputs, shortened for a model or whole for a diff."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.tools.notebooks.document import Notebook, joined

SUFFIX = ".ipynb"
_COLOURS = lazy_regex(r"\x1b\[[0-9;]*m")
_SHOWN_LINES, _SHOWN_CHARS = 20, 2_000
_BINARY = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "video/", "audio/")


def is_notebook(path: str) -> bool:
    """Return whether a path is named like a notebook."""
    return path.casefold().endswith(SUFFIX)


def in_words(text: str | None) -> str | None:
    """Return the whole notebook in words, for a diff; None if the text is no notebook."""
    if text is None:
        return None
    try:
        notebook = Notebook(text)
    except ToolError:
        return None
    return "".join(f"{line}\n" for line in _lines(notebook, whole=True))


def for_reading(notebook: Notebook) -> str:
    """Return the notebook for a model: sources as they are, outputs shortened."""
    return "\n".join(_lines(notebook, whole=False))


def summary_of(notebook: Notebook) -> str:
    """Return the language and the number of cells."""
    metadata = _table(notebook.form.get("metadata"))
    kernel = _table(metadata.get("kernelspec")).get("display_name")
    language = kernel or _table(metadata.get("language_info")).get("name")
    count = len(notebook.cells)
    return f"notebook{f', {language}' if language else ''}, {count} cell{'' if count == 1 else 's'}"


def _lines(notebook: Notebook, *, whole: bool) -> Iterator[str]:
    if whole:
        yield f"notebook: {_compact(notebook.form)}"
    for number, cell in enumerate(notebook.cells, start=1):
        count = cell.get("execution_count")
        ran = f" [{count}]" if count is not None and not whole else ""
        # In a diff, a number would change in all later cells if one is inserted.
        name = f"cell {cell.get('id', '')}".rstrip() if whole else f"cell {number}"
        yield f"--- {name} · {cell.get('cell_type')}{ran}"
        rest = {
            key: value
            for key, value in cell.items()
            if key not in ("id", "cell_type", "execution_count", "source", "outputs")
            and (value or key != "metadata")
        }
        if whole and rest:
            yield _compact(rest)
        yield from joined(cell.get("source", "")).split("\n")
        if whole and count is not None:
            yield f"--- ran as [{count}]"  # below the source, so that the lines of the source stay together
        outputs = cell.get("outputs")
        for output in cast("list[Any]", outputs) if isinstance(outputs, list) else ():
            yield from _output(_table(output), whole=whole)


def _output(output: Mapping[str, Any], *, whole: bool) -> Iterator[str]:
    kind = output.get("output_type")
    if kind == "stream":
        yield f"--- output: {output.get('name')}"
        yield from _shown(joined(output.get("text", "")), whole=whole)
    elif kind == "error":
        yield f"--- output: error {output.get('ename')}: {output.get('evalue')}"
        trace = "\n".join(map(str, cast("list[object]", output.get("traceback") or [])))
        yield from _shown(trace, whole=whole)
    else:
        data = _table(output.get("data"))
        for media, value in data.items():
            yield from _media(media, value, alone=len(data) == 1, whole=whole)
    known = ("output_type", "name", "text", "ename", "evalue", "traceback", "data")
    rest = {key: value for key, value in output.items() if key not in known and value}
    if whole and rest:
        yield _compact(rest)


def _media(media: str, value: object, *, alone: bool, whole: bool) -> Iterator[str]:
    text = _compact(value) if not isinstance(value, (str, list)) else joined(cast("object", value))
    if media.startswith(_BINARY):
        digest = f", SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:12]}" if whole else ""
        size = len(text.rstrip("=\n")) * 3 // 4
        yield f"--- output: {media}, {size:,} bytes{digest}"
    elif whole or media == "text/plain" or alone:
        yield f"--- output: {media}"
        yield from _shown(text, whole=whole)
    else:
        yield f"--- output: {media}, {len(text):,} characters, not shown"


def _shown(text: str, *, whole: bool) -> Iterator[str]:
    lines = text.rstrip("\n").split("\n")
    if whole:
        yield from lines
        return
    plain = [_COLOURS.sub("", line) for line in lines]
    left, room = plain[:_SHOWN_LINES], _SHOWN_CHARS
    for line in left:
        yield line[:room]
        room -= len(line)
        if room <= 0:
            break
    if len(plain) > _SHOWN_LINES or room <= 0:
        yield f"… ({len(plain)} lines, {len(text):,} characters in all)"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _table(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
