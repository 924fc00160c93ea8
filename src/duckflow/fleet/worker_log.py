"""Log of the fleet: lines about runs, from what workers report and from the events of the runs."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from duckflow.config.places import state_dir
from duckflow.domain.errors import UserError
from duckflow.domain.events import ActionStarted, Event, StoredEvent
from duckflow.domain.text import cut
from duckflow.fleet.questions import action_text
from duckflow.fleet.runs import LogLine, Runs
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo, on_one_line
from duckflow.ui.views.events import Describer

_LONGEST = 300
_LOGS = "fleet-logs"


def log_file(run: str) -> Path:
    """Return the file in which the workers of this machine log a run."""
    folder = state_dir() / _LOGS
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{run}.log"


class WorkerLog:
    """Writes a worker's lines to standard error and to a file for each run; the database has its reports."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._describers: dict[str, Describer] = {}

    def report(self, run: str, key: str, **values: object) -> None:
        """Log what the worker did, with a run or, if `run` is empty, on its own."""
        said = text(f"fleet.log.{key}", **values)
        self.write(run, said)
        with suppress(UserError, SQLAlchemyError):  # the file has the line
            self._runs.log(run, said)

    def happened(self, run: str, added: Sequence[Event]) -> None:
        """Log events of a run, which the database already has."""
        describe = self._describers.setdefault(run, Describer())
        for event in added:
            if said := _event_line(describe, event):
                self.write(run, said)

    def forget(self, run: str) -> None:
        """Forget what was remembered to describe a run's events."""
        self._describers.pop(run, None)

    def write(self, run: str, said: str) -> None:
        """Write a line that the database has in another way."""
        line = format_line(LogLine(run=run, at=datetime.now(UTC).timestamp(), text=said))
        with suppress(OSError):  # a full disk or a closed terminal must not end the work
            echo(line, sys.stderr)
        if run:
            with suppress(OSError), log_file(run).open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{line}\n")


def format_line(line: LogLine) -> str:
    """Return a line of the log as people read it: time, run, and what happened."""
    at = datetime.fromtimestamp(line.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{at}  {line.run or '-' * 8}  {cut(on_one_line(line.text), _LONGEST)}"


def run_log(reported: Sequence[LogLine], happened: Sequence[StoredEvent], run: str) -> list[str]:
    """Return the whole log of a run: the workers' reports and the run's events, in order of time."""
    describe = Describer()
    told = [
        LogLine(run=run, at=one.at.timestamp(), text=_event_line(describe, one.event)) for one in happened
    ]
    lines = [*reported, *(one for one in told if one.text)]
    return [format_line(one) for one in sorted(lines, key=lambda one: one.at)]


def _event_line(describe: Describer, event: Event) -> str:
    described = describe(event)
    if isinstance(event, ActionStarted):
        begins = event.effect not in ("read", None)
        return text("fleet.log.begins", what=action_text(event.action)) if begins else ""
    if described is None or described.kind == "question":
        return ""  # the worker reports questions itself
    return f"› {described.text}" if described.kind == "message" else described.text
