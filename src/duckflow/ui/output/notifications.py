"""Calling the user back to the terminal: a bell, or a desktop notification if there is one."""

from collections.abc import Callable
from typing import Literal

from duckflow.ui.output.escaping import visible

Way = Literal["off", "bell", "desktop"]


def notifier(way: Way, signal: Callable[[str], None]) -> Callable[[str], None]:
    """What calls the user; with `off` nothing does."""

    def notify(said: str) -> None:
        if way == "bell":
            signal("\a")
        elif way == "desktop":
            signal(f"\x1b]9;{visible(said)}\x07")

    return notify
