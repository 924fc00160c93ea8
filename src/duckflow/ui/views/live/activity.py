"""Activity in a few lines above the prompt: the reply, command output, tasks, and what is being done."""

import math
import time
from collections.abc import Callable, Iterable

from duckflow.domain.events import ActionFinished, RequestFinished, StoredEvent, UsageReported
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import OutputPiece, ReplyPiece, ThinkingShown, Waiting, Writing
from duckflow.domain.session_client import SessionUpdate, StatusChanged
from duckflow.domain.state import AgentState
from duckflow.domain.transitions import Step
from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.escaping import harmless, on_one_line
from duckflow.ui.output.reply_stream import ReplyStream
from duckflow.ui.output.text_width import cut_to_width, end_to_width, width_of
from duckflow.ui.views.agents import running_line
from duckflow.ui.views.events import waiting_line
from duckflow.ui.views.live.progress import action_name, progress_line

_PREVIEW_ROWS = 6
_OUTPUT_ROWS = 4
_MAX_OUTPUT_CHARS = 4_000
_MAX_THINKING_CHARS = 200_000
_LAST_PIECES, _LAST_CHARS = 100, 500
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PER_SECOND = 4
_BYTES_PER_TOKEN = 4
"""Estimate for a stream that is not reported yet."""
_QUEUED = 3


class Activity:
    """Remembers the latest output and thinking, and how long the provider asks to wait."""

    def __init__(self, replies: ReplyStream, clock: Callable[[], float] = time.monotonic) -> None:
        self._replies = replies
        self._clock = clock
        self._output = ""
        self._thoughts: list[str] = []
        self._thinks_since = 0.0
        self._waiting: Waiting | None = None
        self._waits_until = 0.0
        self.busy = False
        self._tokens = 0
        """Tokens that the models have written since the work began, as they reported."""
        self._written = 0
        """Bytes that a model has written since its last report."""

    def note(self, update: SessionUpdate) -> None:
        """Note what an update says about the current work."""
        match update:
            case StatusChanged():
                if update.busy and not self.busy:
                    self._tokens = self._written = 0
                self.busy = update.busy
            case StoredEvent(event=UsageReported(tokens=tokens)):
                self._tokens, self._written = self._tokens + tokens.output_tokens, 0
            case OutputPiece():
                self._output = (self._output + update.text[-_MAX_OUTPUT_CHARS:])[-_MAX_OUTPUT_CHARS:]
            case ThinkingShown():
                self._waiting = None
                self._written += len(update.text.encode(errors="replace"))
                if not self._thoughts:
                    self._thinks_since = self._clock()
                self._thoughts.append(update.text)
            case Writing():
                self._waiting = None
                self._written += update.size
            case Waiting():
                self._waiting, self._waits_until = update, self._clock() + (update.wait_s or 0.0)
            case StoredEvent(event=RequestFinished()):
                self._waiting = None
                self._tokens = self._written = 0
            case ReplyPiece():
                self._waiting = None  # the model has answered
                self._written += len(update.text.encode(errors="replace"))
            case StoredEvent(event=ActionFinished()):
                self._output = ""  # the result is shown instead
            case _:
                pass

    def end_thinking(self) -> tuple[float, str] | None:
        """Return the seconds and the text of the thinking that has ended; None if it had no text."""
        thought, self._thoughts = "".join(self._thoughts)[-_MAX_THINKING_CHARS:].strip(), []
        return (self._clock() - self._thinks_since, thought) if thought else None

    def lines(self, state: AgentState, queued: Iterable[str], columns: int) -> tuple[Line, ...]:
        """Return the lines to draw above the prompt."""
        room = columns - 1
        output = [line for line in self._output.split("\n") if line.strip()][-_OUTPUT_ROWS:]
        tail = [harmless(line.rpartition("\r")[2].expandtabs(4)) for line in output]
        waits = [text("chat.queued", message=on_one_line(message)) for message in list(queued)[-_QUEUED:]]
        shown: list[Line] = [[("preview", line)] for line in self._replies.preview(room, _PREVIEW_ROWS)]
        shown += [[("faint", f"  {cut_to_width(line, room - 2)}")] for line in tail]
        shown += [[("faint", line)] for line in self._model(room)]
        tasks = progress_line(state, room)
        shown += [tasks] if tasks else []
        shown += [[("faint", cut_to_width(running_line(one), room))] for one in state.agents]
        shown += [[("faint", cut_to_width(line, room))] for line in waits]
        if self.busy:
            profile = state.request.profile if state.request else None
            doing = "checking" if state.step is Step.REVIEW else profile or "unknown"
            doing = text(f"activity.{doing}")  # no numbers of loops here (I10)
            turning = _SPINNER[int(time.monotonic() * _PER_SECOND) % len(_SPINNER)]
            hint = f" {turning} {self._spent()}"
            if state.running is not None:  # a command may take long, and it is not the model that thinks
                action = state.running.action
                named = f"🦆 {action_name(action.operation, action.args)}"
                doing = cut_to_width(named, max(room - width_of(hint), room // 2))
            hint = cut_to_width(hint, max(room - width_of(doing), 0))
            shown.append([("activity", cut_to_width(doing, room)), ("faint", hint)])
        return tuple([[("", "")], *shown] if shown else shown)

    def _spent(self) -> str:
        """Return how much the models have written, and how to stop. The status line shows the time."""
        shown: list[str] = []
        if tokens := self._tokens + self._written // _BYTES_PER_TOKEN:
            shown.append(text("activity.tokens", count=f"{tokens:,}"))
        return " · ".join([*shown, text("activity.stop")])

    def _model(self, columns: int) -> list[str]:
        if self._waiting is not None:
            left = math.ceil(self._waits_until - self._clock())
            now = self._waiting if self._waiting.wait_s is None else replace(self._waiting, wait_s=left)
            return [cut_to_width(waiting_line(now), columns)] if now.wait_s is None or left > 0 else []
        last = on_one_line("".join(self._thoughts[-_LAST_PIECES:])[-_LAST_CHARS:])
        room = columns - width_of(text("thinking.now", words=""))
        return [text("thinking.now", words=end_to_width(last, room))] if last else []
