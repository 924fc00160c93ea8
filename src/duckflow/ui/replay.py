"""A session shown again as it happened, with its pauses shortened."""

import shutil
import time
from collections.abc import Sequence

from duckflow.domain.events import ApprovalAnswered, ApprovalRequested, Recorded, UserMessage
from duckflow.i18n.catalogue import text
from duckflow.ui.colours import paint_difference
from duckflow.ui.lines import approval_text
from duckflow.ui.paper import PlainPaper, TerminalPaper
from duckflow.ui.screen import Screen

_LONGEST_S = 1.5
"""No pause is longer than this, however long it was."""


def replay(events: Sequence[Recorded], speed: float) -> None:
    """Write the session on standard output; `speed` 0 leaves out the pauses."""
    paper = TerminalPaper(PlainPaper().write, lambda: shutil.get_terminal_size().columns)
    screen = Screen(paper)
    before = events[0].at if events else None
    for recorded in events:
        if before is not None and speed > 0:
            time.sleep(min(max((recorded.at - before).total_seconds(), 0) / speed, _LONGEST_S))
        before = recorded.at
        match recorded.event:
            case UserMessage() as said:
                screen.said(said.text)
            case ApprovalRequested() as asked:
                paper.raw(approval_text(asked.approval, paint_difference if paper.coloured else str))
            case ApprovalAnswered() as answered:
                key = "approval.yes" if answered.yes else "approval.no"
                paper.line(text(key, reason=answered.reason).rstrip(), "dim")
            case _:
                screen(recorded)
