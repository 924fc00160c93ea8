"""What is drawn around the line being typed: what is going on above it, the status bar below."""

from typing import NamedTuple

Line = list[tuple[str, str]]
"""Pieces of a line, each with its style."""


class PromptView(NamedTuple):
    """What is drawn now. Whoever makes the lines cuts them to the width."""

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
    "failed": "ansired",
    "completion-menu": "noinherit",
    "completion-menu.completion": "noinherit",
    "completion-menu.completion.current": "noinherit reverse",
    "completion-menu.meta.completion": "noinherit ansibrightblack",
    "completion-menu.meta.completion.current": "noinherit reverse",
    "scrollbar.background": "noinherit",
    "scrollbar.button": "noinherit reverse",
}
"""The eight colours every terminal has: they follow the user's own theme."""

_OTHER: dict[str, dict[str, str]] = {
    "light": {"ansicyan": "ansiblue", "ansiyellow": "ansimagenta"},
    "dark": {"ansicyan": "ansibrightcyan", "ansiyellow": "ansibrightyellow", "ansibrightblack": "ansiwhite"},
}


def styles_of(theme: str) -> dict[str, str]:
    """The styles in the colours of a theme; without any, only what is chosen stands out."""
    if theme == "none":
        return {name: style if "reverse" in style else "" for name, style in STYLES.items()}
    other = _OTHER.get(theme, {})
    return {name: " ".join(other.get(word, word) for word in style.split()) for name, style in STYLES.items()}
