"""What is in the prompt and what it costs: a bar for each part, and what was left out."""

from duckflow.domain.model import PromptUse
from duckflow.i18n.catalogue import text
from duckflow.ui.output.text_width import width_of

_BAR = 24
_FULL, _EMPTY = "█", "░"


def context_text(use: PromptUse, columns: int) -> str:
    """The whole of the window, its parts by size of what they take, and what did not fit."""
    used = sum(use.tokens.values())
    share = used / use.window
    head = text(
        "context.head", model=use.model, used=f"{used:,}", window=f"{use.window:,}", share=f"{share:.0%}"
    )
    rows = [(text(f"prompt.section.{name}"), count) for name, count in use.tokens.items() if count]
    wide = max((width_of(title) for title, _ in rows), default=0)
    room = max(min(_BAR, columns - wide - 12), 4)
    most = max((count for _, count in rows), default=1)
    lines = [
        f"  {title}{' ' * (wide - width_of(title))}  {_bar(count / most, room)} {count:>7,}"
        for title, count in rows
    ]
    left = [text(f"context.left_out.{name}", count=count) for name, count in use.left_out.items() if count]
    more = [text("context.left", what=", ".join(left))] if left else []
    return "\n".join([head, f"  {_bar(share, min(_BAR * 2, columns - 3))}", *lines, *more])


def _bar(share: float, room: int) -> str:
    """At least a little of it is full, since nothing is shown that takes nothing."""
    full = min(max(round(share * room), 1), room)
    return _FULL * full + _EMPTY * (room - full)
