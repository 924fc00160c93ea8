"""A session told again, from its events, as a person would read it."""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ApprovalRequested,
    AttemptPlanned,
    ConsultationAnswered,
    ConsultationRequested,
    ErrorReported,
    Evaluated,
    MemoryKept,
    Recorded,
    Reply,
    RequirementsFound,
    SessionStarted,
    UserMessage,
)
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.output.colours import paint_difference
from duckflow.ui.output.writer import PlainWriter, TerminalWriter
from duckflow.ui.screen import Screen
from duckflow.ui.views.events import (
    action_line,
    approval_text,
    chosen_line,
    consultation_text,
    error_line,
    start_line,
)
from duckflow.ui.views.goal import satisfaction_text
from duckflow.ui.views.memory import learned_line

_RECALLED = 800
"""Characters of a reply that are worth seeing again."""


class TranscriptPrinter:
    """Prints one event after the other."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def __call__(self, recorded: Recorded) -> None:
        """Print one event, if it is one a reader wants."""
        line = _line(recorded)
        if line:
            self._out.write(line + "\n")


def last_exchange(events: Sequence[Recorded]) -> Iterator[str]:
    """What was last said, done and answered, for someone who comes back; an open question is asked anew."""
    asked = [place for place, one in enumerate(events) if isinstance(one.event, UserMessage)]
    for recorded in events[asked[-1] :] if asked else ():
        if isinstance(recorded.event, UserMessage | Reply | ActionFinished):
            yield cut(_line(recorded) or "", _RECALLED)


def _line(recorded: Recorded) -> str | None:
    match recorded.event:
        case SessionStarted() as started:
            return start_line(started)
        case UserMessage() as said:
            return f"\n{text('chat.prompt')}{said.text}"
        case Reply() as reply:
            return reply.text
        case ActionFinished() as finished:
            return action_line(finished)
        case ApprovalRequested() as asked:
            return approval_text(asked.approval)
        case ApprovalAnswered() as answered:
            return text("approval.yes" if answered.yes else "approval.no", reason=answered.reason).rstrip()
        case ConsultationRequested() as asked:
            return consultation_text(asked.consultation)
        case ConsultationAnswered() as answered:
            return chosen_line(answered.answer)
        case RequirementsFound() | AttemptPlanned() | Evaluated() as told:
            return satisfaction_text(told)
        case MemoryKept() as kept:
            return learned_line(kept)
        case ErrorReported() as error:
            return error_line(error)
        case _:
            return None


_LONGEST_S = 1.5
"""No pause is longer than this, however long it was."""


def replay(events: Sequence[Recorded], speed: float) -> None:
    """Write the session on standard output; `speed` 0 leaves out the pauses."""
    writer = TerminalWriter(PlainWriter().write, lambda: shutil.get_terminal_size().columns)
    screen = Screen(writer)
    before = events[0].at if events else None
    for recorded in events:
        if before is not None and speed > 0:
            time.sleep(min(max((recorded.at - before).total_seconds(), 0) / speed, _LONGEST_S))
        before = recorded.at
        match recorded.event:
            case UserMessage() as said:
                screen.said(said.text)
            case ApprovalRequested() as asked:
                writer.raw(approval_text(asked.approval, paint_difference if writer.coloured else str))
            case ApprovalAnswered() as answered:
                key = "approval.yes" if answered.yes else "approval.no"
                writer.line(text(key, reason=answered.reason).rstrip(), "dim")
            case _:
                screen(recorded)
