"""What an action did, in a line; of a command also the end of its output. The rest is a key away."""

from duckflow.domain.events import ActionFinished
from duckflow.i18n.catalogue import text
from duckflow.ui.lines import action_line
from duckflow.ui.revealing import harmless
from duckflow.ui.wrapping import cut_to_width

_COMMAND = "shell.run"
_TAIL = 3


def tool_lines(event: ActionFinished, columns: int) -> list[str]:
    """One line; for a command its last lines too, and how much more there is to expand."""
    first = action_line(event)
    lines = [line for line in event.text.strip().split("\n") if line.strip()]
    if event.operation != _COMMAND:
        hidden = len(lines) - 1
        return (
            [first, f"  {text('action.more', count=hidden)}"]
            if hidden > 0 and event.outcome != "ok"
            else [first]
        )
    tail = [f"  {cut_to_width(harmless(line.expandtabs(4)), columns - 3)}" for line in lines[1:][-_TAIL:]]
    hidden = len(lines) - 1 - len(tail)
    more = [f"  {text('action.more', count=hidden)}"] if hidden > 0 else []
    return [first, *more, *tail]
