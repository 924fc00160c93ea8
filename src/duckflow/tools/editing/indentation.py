"""Indent new lines like a file, by comparing how the model and the file indent the same lines."""

from collections.abc import Iterable, Sequence
from itertools import pairwise


def indent_of(line: str) -> str:
    """Return the white space at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


class Indentation:
    """Translation from a model's indentation to that of a file."""

    def __init__(self, written: Iterable[str], own: Iterable[str]) -> None:
        self._known: dict[str, str] = {}
        for theirs, ours in zip(written, own, strict=True):
            if theirs.strip():
                self._known.setdefault(indent_of(theirs), indent_of(ours))
        self._unit = _unit(self._known)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the lines with the file's indentation."""
        return [self._indent(indent_of(line)) + line.lstrip() if line.strip() else "" for line in lines]

    def _indent(self, written: str) -> str:
        if written in self._known:
            return self._known[written]
        nearest = [known for known in self._known if written.startswith(known)]
        if nearest:
            base = max(nearest, key=len)
            return self._known[base] + self._deeper(written[len(base) :])
        over = [known for known in self._known if known.startswith(written)]
        if not over:
            return written
        base = min(over, key=len)
        return self._known[base].removesuffix(self._deeper(base[len(written) :]))

    def _deeper(self, more: str) -> str:
        theirs, ours = self._unit
        count, rest = divmod(len(more), len(theirs)) if theirs else (0, 0)
        if count and not rest and more == theirs * count:
            return ours * count
        return more


def _unit(known: dict[str, str]) -> tuple[str, str]:
    """Return one step of the model's indentation and one of the file's; empty if they are unknown."""
    steps = sorted({**known, "": known.get("", "")}.items(), key=lambda item: len(item[0]))
    for (above, own_above), (below, own_below) in pairwise(steps):
        learned = above in known or (below[:1] != own_below[:1] and own_below)
        if learned and below.startswith(above) and own_below.startswith(own_above):
            return _reduced(below[len(above) :], own_below[len(own_above) :])
    return "", ""


def _reduced(theirs: str, ours: str) -> tuple[str, str]:
    """Reduce a step to the smallest of its kind: eight spaces for two tabs means four for one."""
    for count in range(min(len(theirs), len(ours)), 1, -1):
        one, other = theirs[: len(theirs) // count], ours[: len(ours) // count]
        if one * count == theirs and other * count == ours:
            return one, other
    return theirs, ours
