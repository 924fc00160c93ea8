"""Draws a terminal's screen as an SVG picture, with full-width characters in two columns."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import pyte

CELL, LINE = 8.4, 19
SECONDS = 4
"""Seconds that each still is shown."""
MARGIN, BAR = 18, 34
FONT = (
    "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK JP', "
    "'Noto Sans CJK JP', 'Hiragino Sans', 'Yu Gothic', monospace"
)
GROUND, FOREGROUND = "#1b1f27", "#d7dce5"
PALETTE = {
    "black": "#3b4252",
    "red": "#f07178",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c792ea",
    "cyan": "#56c2cf",
    "white": "#d7dce5",
    "brightblack": "#8a93a5",
}


class Look(NamedTuple):
    """Colours and weight of a character."""

    colour: str
    bold: bool
    ground: str | None


class Run(NamedTuple):
    """Adjacent characters with the same look and width, drawn together."""

    column: int
    columns: int
    text: str
    look: Look


def still(screen: pyte.Screen, rows: int) -> list[str]:
    """Draw the first `rows` lines of a screen as it is now."""
    return [_drawn(run, row) for row in range(rows) for run in _runs(screen, row)]


def draw(stills: Sequence[list[str]], columns: int, rows: int, title: str) -> str:
    """Draw an endless animation of the stills in a window with a title.

    It begins with the last still, the fullest, which is also shown where nothing moves.
    """
    width = round(columns * CELL + 2 * MARGIN)
    height = BAR + rows * LINE + MARGIN
    share = 100 / (len(stills) + 1)  # the last still is shown twice as long
    moving = (
        "text{white-space:pre}"
        f".still{{opacity:0;animation:turn {SECONDS * (len(stills) + 1)}s steps(1) infinite}}"
        f"@keyframes turn{{0%{{opacity:1}}{share:.2f}%{{opacity:0}}}}"
        f".last{{opacity:1;animation-name:end}}@keyframes end{{0%{{opacity:1}}{2 * share:.2f}%{{opacity:0}}}}"
        "@media(prefers-reduced-motion){.still{animation:none}}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{moving}</style>",
        f'<rect width="{width}" height="{height}" rx="9" fill="{GROUND}"/>',
        *(
            f'<circle cx="{MARGIN + 3 + 18 * place}" cy="17" r="5.5" fill="{colour}"/>'
            for place, colour in enumerate(("#f07178", "#e5c07b", "#98c379"))
        ),
        f'<text x="{width / 2}" y="22" text-anchor="middle" fill="#8a93a5" font-family="system-ui, '
        f'sans-serif" font-size="13">{escape(title)}</text>',
        f'<g font-family="{FONT}" font-size="14" xml:space="preserve">',
    ]
    for number, one in enumerate(stills):
        last = number + 1 == len(stills)
        kind = 'class="still last"' if last else 'class="still" opacity="0"'
        parts += [
            f'<g {kind} style="animation-delay:{SECONDS * (number + 1 - len(stills))}s">',
            *one,
            "</g>",
        ]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _drawn(run: Run, row: int) -> str:
    x, y = MARGIN + run.column * CELL, BAR + row * LINE + 15
    length = run.columns * CELL
    ground = ""
    if run.look.ground:
        ground = (
            f'<rect x="{x:.1f}" y="{y - 15}" width="{length:.1f}" height="{LINE}" fill="{run.look.ground}"/>'
        )
    weight = ' font-weight="bold"' if run.look.bold else ""
    return (
        f'{ground}<text x="{x:.1f}" y="{y}" fill="{run.look.colour}"{weight} '
        f'textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs">{escape(run.text)}</text>'
    )


def _runs(screen: pyte.Screen, row: int) -> Iterator[Run]:
    """Split a line into runs. Full-width characters stay separate, because fonts differ in their width."""
    line = screen.buffer[row]
    cells = []
    for column in range(screen.columns):
        wide = column + 1 < screen.columns and line[column + 1].data == ""
        cells.append((column, line[column], wide))
    shown = [cell for cell in cells if cell[1].data]

    def kind(cell: tuple[int, Any, bool]) -> tuple[Look, int]:
        column, character, wide = cell
        return _look(character), column if wide else -1

    for (look, _), group in groupby(shown, key=kind):
        run = list(group)
        text = "".join(character.data for _, character, _ in run)
        if look.ground is None:
            text = text.rstrip(" ")
        columns = 2 if run[0][2] else len(text)
        if text:
            yield Run(run[0][0], columns, text, look)


def _look(character: Any) -> Look:  # noqa: ANN401 - pyte has no types
    colour, ground = _colour(character.fg, FOREGROUND), _colour(character.bg, None)
    if character.reverse:
        colour, ground = ground or GROUND, colour
    return Look(colour or FOREGROUND, character.bold, ground)


def _colour(name: str, default: str | None) -> str | None:
    if name == "default":
        return default
    return PALETTE.get(name) or (f"#{name}" if len(name) == 6 else default)
