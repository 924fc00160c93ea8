"""Differences between two texts, complete and in the unified format."""

from collections.abc import Iterator
from difflib import unified_diff
from io import StringIO

from duckflow.safety.files.encoding import common_start
from duckflow.safety.paths import printable
from duckflow.tools.notebooks.words import in_words, is_notebook

_CONTEXT = 3
_TOO_MANY = 60_000_000  # pairs of lines; beyond that a comparison takes too long
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified(path: str, before: str | None, after: str | None) -> str:
    """Return the unified diff, empty if nothing changes. None stands for a missing file.

    The cells of notebooks are shown in words, unless these are the same or one side is no notebook.
    """
    if before == after:
        return ""
    if is_notebook(path):
        before, after = _in_words(before, after)
    was, becomes = _names(path, before, after)
    lines = (
        f"--- {was}\n",
        f"+++ {becomes}\n",
        *_hunks(split_lines(before or ""), split_lines(after or "")),
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def _in_words(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    old, new = in_words(before), in_words(after)
    readable = (old is not None or before is None) and (new is not None or after is None)
    return (old, new) if readable and old != new else (before, after)


def difference_of(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the diff of two contents. Binary contents are only named."""
    texts = tuple(None if data is None else _as_text(data) for data in (before, after))
    if any("\0" in (text or "") for text in texts):
        was, becomes = _names(path, before, after)
        return f"Binary files {was} and {becomes} differ\n" if before != after else ""
    return unified(path, *texts)


def _names(path: str, before: object, after: object) -> tuple[str, str]:
    named = printable(path)
    return "/dev/null" if before is None else f"a/{named}", "/dev/null" if after is None else f"b/{named}"


def _as_text(data: bytes) -> str:
    """Return the content as text, or one NUL if it is no text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "\0"


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their line feeds. The last line may have no line feed."""
    return list(StringIO(text, newline="\n"))


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    if _hard(before, after):
        yield f"@@ -1,{len(before)} +1,{len(after)} @@\n"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    yield from list(unified_diff(before, after, n=_CONTEXT))[2:]


def _hard(before: list[str], after: list[str]) -> bool:
    """Return True if the part between the common beginning and end is too large to compare."""
    start = common_start(before, after)
    end = common_start(before[start:][::-1], after[start:][::-1])
    return (len(before) - start - end) * (len(after) - start - end) > _TOO_MANY
