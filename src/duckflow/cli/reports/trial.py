"""The work of `duckflow try`: a command on a copy, and the question whether to apply its changes (O7)."""

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from duckflow.api import find_session
from duckflow.app.opening import Opening
from duckflow.app.trial import Trial
from duckflow.config.loading import load_as_trusted
from duckflow.domain.errors import UsageError
from duckflow.domain.events import ActionFinished, StoredEvent
from duckflow.domain.frozen import replace
from duckflow.domain.hosts import read_host
from duckflow.domain.lines import line
from duckflow.domain.live_updates import LiveUpdate, OutputPiece
from duckflow.domain.questions.approval import Approval
from duckflow.i18n.answers import read_answer
from duckflow.i18n.catalogue import text
from duckflow.tools.shell import RUN
from duckflow.ui.output.escaping import echo, visible
from duckflow.ui.transcript import event_object
from duckflow.ui.views.approval import approval_view, brief_lines
from duckflow.ui.views.events import Describer

WAITS = 3
"""Exit code if changes wait for an answer, as for `duckflow run`."""


_ASK_FOR_HOSTS = ("action.hosts_refused", "action.no_network")
"""Hints that say how to ask for hosts in a conversation, which is another way than here."""


class TrialOptions:
    """Flags of `duckflow try`."""

    def __init__(
        self, folder: Path, hosts: Sequence[str], *, network: bool, yes: bool, as_json: bool
    ) -> None:
        self.folder, self.network, self.yes, self.as_json = folder, network, yes, as_json
        try:
            self.hosts = tuple(map(read_host, hosts))
        except ValueError as exc:
            raise UsageError("trial.no_host", reason=exc) from exc


def try_with(command: Sequence[str], options: TrialOptions) -> int:
    """Run the command; return its exit code, or that of an open question."""
    # One word is a line for bash, several are the words of a command.
    line = command[0] if len(command) == 1 else shlex.join(command)
    return asyncio.run(_try(line, options))


def apply_later(session: str) -> int:
    """Apply the changes of an earlier command, whose question was not answered."""
    earlier = find_session(session)
    return asyncio.run(_apply(earlier.id, Path(earlier.workspace)))


async def _try(line: str, options: TrialOptions) -> int:
    shown = _Shown(as_json=options.as_json)
    trial = Trial(Opening(loaded=load_as_trusted(options.folder), folder=options.folder), shown)
    async with aclosing(trial):
        work = asyncio.ensure_future(trial.run(line, network=options.network, hosts=options.hosts))
        for wish in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(wish, work.cancel)
        try:
            asked = await work
        except asyncio.CancelledError:
            return 130
        return await _settle(trial, asked, shown, yes=options.yes)


async def _apply(session_id: str, folder: Path) -> int:
    shown = _Shown(as_json=False)
    trial = Trial(Opening(load_as_trusted(folder), folder, session_id=session_id), shown)
    async with aclosing(trial):
        if trial.question is None:
            raise UsageError("trial.nothing_waits", session=session_id)
        return await _settle(trial, trial.question, shown, yes=True)


async def _settle(trial: Trial, asked: Approval | None, shown: "_Shown", *, yes: bool) -> int:
    """Ask until the changes are applied or discarded. Return the exit code."""
    while asked is not None:
        answer = True if yes else await asyncio.to_thread(_ask, asked, shown.show)
        if answer is None:
            echo(text("trial.waits", session=trial.session_id), sys.stderr)
            return WAITS
        asked = await trial.answer(asked, yes=answer)
    return shown.exit_code


def _ask(asked: Approval, show: Callable[[str], None]) -> bool | None:
    """Show the changes and read a yes or no. Return None if no terminal is there to answer."""
    view = approval_view(asked)
    usual = view.rationale if view.expected else ""
    show("\n".join(line for line, _ in brief_lines(view) if line != usual))
    show(visible(asked.difference).rstrip("\n"))
    if not sys.stdin.isatty():
        return None
    while True:
        sys.stderr.write(text("trial.ask"))
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            return None
        if (answer := read_answer(line)) is not None:
            return answer.yes
        show(text("trial.unclear"))


class _Shown:
    """Prints the command's output as it comes, and what became of its changes; or every event as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json
        self._describe = Describer()
        self.exit_code = 0
        """Exit code of the command, once it has ended."""

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        if isinstance(what, OutputPiece) and not self._json:
            sys.stdout.write(visible(what.text))
            sys.stdout.flush()
        if not isinstance(what, StoredEvent):
            return
        event = what.event
        if isinstance(event, ActionFinished) and event.operation == RUN:
            self.exit_code = 1 if event.exit_code is None else event.exit_code
        if self._json:
            echo(json.dumps(event_object(what), ensure_ascii=False))
            return
        if not isinstance(event, ActionFinished):
            self._describe(event)
            return
        told = (line("trial.hosts") if one.key in _ASK_FOR_HOSTS else one for one in event.told)
        described = self._describe(replace(event, told=tuple(told)))
        if described is None:
            return
        well = event.operation == RUN and event.exit_code == 0
        for said in (*(() if well else (described.text,)), *described.notes):
            self.show(said)

    def show(self, said: str) -> None:
        """Print a line beside the output; with JSON, the events say the same."""
        if said and not self._json:
            echo(said, sys.stderr)
