"""Lines around the prompt and their styles: activity above it, the status bar below it."""

from typing import NamedTuple

Line = list[tuple[str, str]]
"""A line, as pieces of style and text."""


class PromptView(NamedTuple):
    """Lines to draw above and below the prompt, already cut to the width of the terminal."""

    activity: tuple[Line, ...] = ()
    bar: tuple[Line, ...] = ()


STYLES = {
    "prompt": "ansicyan bold",
    "question": "ansiyellow bold",
    "activity": "ansicyan",
    "preview": "",
    "faint": "ansibrightblack",
    "bar": "ansibrightblack",
    "bar.low": "ansired",
    "bar.middle": "ansiyellow",
    "bar.mode": "ansicyan",
    "bar.warning": "ansiyellow",
    "done": "ansigreen",
    "choice": "",
    "picked": "reverse",
    "completion-menu": "noinherit",
    "completion-menu.completion": "noinherit",
    "completion-menu.completion.current": "noinherit reverse",
    "completion-menu.meta.completion": "noinherit ansibrightblack",
    "completion-menu.meta.completion.current": "noinherit reverse",
}
"""Styles in the eight standard colours, which follow the colours of the terminal."""

_OTHER: dict[str, dict[str, str]] = {
    "light": {"ansicyan": "ansiblue", "ansiyellow": "ansimagenta"},
    "dark": {"ansicyan": "ansibrightcyan", "ansiyellow": "ansibrightyellow", "ansibrightblack": "ansiwhite"},
}


def styles_of(theme: str) -> dict[str, str]:
    """Return the styles in the colours of a theme. In theme "none", only the selection is marked."""
    if theme == "none":
        return {name: style if "reverse" in style else "" for name, style in STYLES.items()}
    other = _OTHER.get(theme, {})
    return {name: " ".join(other.get(word, word) for word in style.split()) for name, style in STYLES.items()}
