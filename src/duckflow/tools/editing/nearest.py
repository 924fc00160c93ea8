"""Find the text in a file that is most like a text that was not found, with line numbers."""

from duckflow.tools.editing.matching import content_lines, squeeze

_CANDIDATES = 12
_LIKE_ENOUGH = 0.35
_SHOWN_LINES = 20
_SHOWN_COLUMNS = 200


def show_lines(lines: list[str], first: int) -> str:
    """Return lines with their numbers, starting at `first`."""
    shown = [f"{first + index}| {line[:_SHOWN_COLUMNS]}" for index, line in enumerate(lines[:_SHOWN_LINES])]
    if len(lines) > _SHOWN_LINES:
        shown.append(f"… {len(lines) - _SHOWN_LINES} more lines")
    return "\n".join(shown)


def nearest_text(text: str, wanted: str) -> str | None:
    """Return the most similar lines with their numbers, None if nothing is similar."""
    lines = text.split("\n")
    searched = [_pairs(line) for line in content_lines(wanted)]
    if not searched:
        return None
    # Search everywhere for the line with the most letter pairs, and compare the others only around its
    # matches.
    anchor = max(range(len(searched)), key=lambda index: len(searched[index]))
    pairs = [_pairs(line) for line in lines]
    ranked = sorted(range(len(lines)), key=lambda index: -_likeness(searched[anchor], pairs[index]))
    starts = {max(0, index - anchor) for index in ranked[:_CANDIDATES]}

    def score(start: int) -> float:
        there = pairs[start : start + len(searched)]
        return sum(map(_likeness, searched, there)) / len(searched)

    best = max(sorted(starts), key=score)
    if score(best) < _LIKE_ENOUGH:
        return None
    return show_lines(lines[best : best + len(searched)], best + 1)


def _pairs(line: str) -> frozenset[str]:
    """Return pairs of neighbouring letters, which work for any language and script."""
    letters = squeeze(line)
    return frozenset(letters[index : index + 2] for index in range(max(len(letters) - 1, 1))) - {""}


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return 0 for nothing in common, 1 for the same pairs. Two blank lines are the same."""
    if not one or not other:
        return float(one == other)
    return 2 * len(one & other) / (len(one) + len(other))
