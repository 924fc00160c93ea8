"""What is going on, in a few lines above the prompt: a reply, output, tasks, and one plain line."""

import math
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import Waiting
from duckflow.domain.session_client import SessionClient
from duckflow.domain.state import AgentState
from duckflow.i18n.catalogue import text
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.input.prompt_view import DrawView, Line, PromptView
from duckflow.ui.output.escaping import harmless, on_one_line
from duckflow.ui.output.text_width import cut_to_width, end_to_width, width_of
from duckflow.ui.views.events import waiting_line
from duckflow.ui.views.live.progress import progress_line
from duckflow.ui.views.live.status_bar import bar_lines

_PREVIEW_ROWS = 6
_OUTPUT_ROWS = 4
_KEPT = 4_000
"""Characters of a command's output that are kept to be shown while it runs."""
_THOUGHT = 200_000
"""Characters of thinking that are kept to be shown when it is over."""
_LAST_PIECES, _PREVIEW = 100, 500
"""Pieces and characters of thinking that are looked at for its last words."""
_TURNING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PER_SECOND = 4
_QUEUED = 3

Preview = Callable[[int, int], list[str]]


class Thinking(NamedTuple):
    """Thinking of a model that is over: how long it took, and all of it that was readable."""

    seconds: float
    text: str


class Activity:
    """Remembers what a running command printed last, what the model thinks, how long a provider wants us to
    wait, and whether something is being done."""

    def __init__(self, preview: Preview, clock: Callable[[], float] = time.monotonic) -> None:
        self._preview = preview
        self._clock = clock
        self._output = ""
        self._thoughts: list[str] = []
        self._thinks_since = 0.0
        self._waiting: Waiting | None = None
        self._waits_until = 0.0
        self.busy = False

    def add_output(self, piece: str) -> None:
        """A running command printed something."""
        self._output = (self._output + piece[-_KEPT:])[-_KEPT:]

    def forget_output(self) -> None:
        """The command has ended; its result is shown otherwise."""
        self._output = ""

    def add_thinking(self, piece: str) -> None:
        """The model thinks on."""
        self.end_waiting()
        if not self._thoughts:
            self._thinks_since = self._clock()
        self._thoughts.append(piece)

    def end_thinking(self) -> Thinking | None:
        """The model has stopped thinking; its thoughts, if it had any that can be read."""
        thought, self._thoughts = "".join(self._thoughts)[-_THOUGHT:].strip(), []
        return Thinking(self._clock() - self._thinks_since, thought) if thought else None

    def wait(self, waiting: Waiting) -> None:
        """The model is asked again: say why, and count down the seconds until then."""
        self._waiting, self._waits_until = waiting, self._clock() + (waiting.wait_s or 0.0)

    def end_waiting(self) -> None:
        """The model answers again."""
        self._waiting = None

    def lines(self, state: AgentState, queued: Iterable[str], columns: int) -> tuple[Line, ...]:
        """All there is to see now."""
        room = columns - 1
        shown: list[Line] = [[("preview", line)] for line in self._preview(room, _PREVIEW_ROWS)]
        shown += [[("faint", f"  {line}")] for line in self._tail(room - 2)]
        shown += [[("faint", line)] for line in self._model(room)]
        tasks = progress_line(state, room)
        shown += [tasks] if tasks else []
        shown += [[("faint", _waits(message, room))] for message in list(queued)[-_QUEUED:]]
        if self.busy:
            shown.append(_doing(state, room))
        return tuple([[("", "")], *shown] if shown else shown)

    def _tail(self, columns: int) -> list[str]:
        lines = [line for line in self._output.split("\n") if line.strip()][-_OUTPUT_ROWS:]
        return [cut_to_width(harmless(line.rpartition("\r")[2].expandtabs(4)), columns) for line in lines]

    def _model(self, columns: int) -> list[str]:
        """The last words of the model's thinking, or the seconds until it is asked again."""
        if self._waiting is not None:
            left = math.ceil(self._waits_until - self._clock())
            now = self._waiting if self._waiting.wait_s is None else replace(self._waiting, wait_s=left)
            return [cut_to_width(waiting_line(now), columns)] if now.wait_s is None or left > 0 else []
        if not self._thoughts:
            return []
        last = on_one_line("".join(self._thoughts[-_LAST_PIECES:])[-_PREVIEW:])
        room = columns - width_of(text("thinking.now", words=""))
        return [text("thinking.now", words=end_to_width(last, room))] if last else []


def _doing(state: AgentState, columns: int) -> Line:
    """One plain line by the kind of task, without numbers (I10)."""
    profile = state.request.profile if state.request else None
    turning = _TURNING[int(time.monotonic() * _PER_SECOND) % len(_TURNING)]
    said = text(f"activity.{profile or 'unknown'}")
    hint = f" {turning} {text('activity.stop')}"
    room = max(columns - width_of(said), 0)
    return [("activity", cut_to_width(said, columns)), ("faint", cut_to_width(hint, room))]


def _waits(message: str, columns: int) -> str:
    return cut_to_width(text("chat.queued", message=on_one_line(message)), columns)


def prompt_view(client: SessionClient, activity: Activity, keyboard: Keyboard) -> DrawView:
    """Draws what is around the prompt from what the session and the screen know at that moment."""

    def draw(columns: int) -> PromptView:
        state = client.state
        return PromptView(
            activity=activity.lines(state, keyboard.inbox, columns),
            bar=bar_lines(state, client.status, columns),
        )

    return draw
