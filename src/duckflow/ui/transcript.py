"""A session told again from its events: printed, replayed, or what was said last."""

import time
from collections.abc import Iterator, Sequence

from duckflow.domain.events import ActionFinished, ActionStarted, Reply, StoredEvent, UserMessage
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen
from duckflow.ui.views.events import Describer, EventDescription

_RECALLED = 800
"""Characters of a reply that are worth seeing again."""
_LONGEST_S = 1.5
"""No pause of a replay is longer than this."""


def print_transcript(events: Sequence[StoredEvent]) -> None:
    """Print everything a reader wants to know, in order."""
    describe = Describer()
    for recorded in events:
        described = describe(recorded.event)
        if described is not None:
            echo(_told(described))


def last_exchange(events: Sequence[StoredEvent]) -> Iterator[str]:
    """What was last said, done and answered, for someone who comes back; an open question is asked again."""
    describe = Describer()
    asked = [place for place, one in enumerate(events) if isinstance(one.event, UserMessage)]
    for recorded in events[asked[-1] :] if asked else ():
        if isinstance(recorded.event, UserMessage | Reply | ActionStarted | ActionFinished):
            described = describe(recorded.event)
            if described is not None:
                yield cut(_told(described), _RECALLED)


def replay(events: Sequence[StoredEvent], speed: float) -> None:
    """Write the session on standard output as it happened; `speed` 0 leaves out the pauses."""
    screen = Screen(Writer(formatted=True), also=("message", "question", "undo"))
    before = events[0].at if events else None
    for recorded in events:
        if before is not None and speed > 0:
            time.sleep(min(max((recorded.at - before).total_seconds(), 0) / speed, _LONGEST_S))
        before = recorded.at
        screen(recorded)


def _told(described: EventDescription) -> str:
    message = described.kind == "message"
    return f"\n{text('chat.prompt')}{described.text}" if message else described.plain
