"""What `duckflow fleet` reads and shows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from duckflow.domain.errors import UsageError
from duckflow.domain.validation import describe_faults
from duckflow.fleet.fleet import Fleet
from duckflow.fleet.runs import FleetRun, RunOptions
from duckflow.i18n.catalogue import text
from duckflow.ui.headless import event_object
from duckflow.ui.output.escaping import echo
from duckflow.ui.transcript import print_transcript


class WantedRun(RunOptions):
    """A line of a file of requests."""

    folder: Path
    request: str


def read_requests(file: Path, common: RunOptions) -> Iterator[tuple[Path, str, RunOptions]]:
    """The requests of a JSON Lines file; what a line leaves out is as the flags say."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError("fleet.file_unreadable", file=file, reason=str(exc)) from exc
    for number, line in enumerate(lines, start=1):
        if line.strip():
            wanted = _read_line(file, number, line, common)
            options = RunOptions.model_validate(wanted.model_dump(exclude={"folder", "request"}))
            yield file.parent / wanted.folder, wanted.request, options


def _read_line(file: Path, number: int, line: str, common: RunOptions) -> WantedRun:
    try:
        return WantedRun.model_validate({**common.model_dump(), **json.loads(line)})
    except ValidationError as exc:
        reason = describe_faults(exc, WantedRun)
        raise UsageError("fleet.file_line", file=file, line=number, reason=reason) from exc
    except (ValueError, TypeError) as exc:
        raise UsageError("fleet.file_line", file=file, line=number, reason=str(exc)) from exc


def run_object(fleet: Fleet, run: FleetRun) -> dict[str, Any]:
    """A run as programs get it: its row, the open question, the patch and every event."""
    state = fleet.state(run)
    asked = state.approval or state.consultation
    return {
        **run.model_dump(mode="json"),
        "asked": asked.model_dump(mode="json") if asked and run.state == "waiting" else None,
        "patch": fleet.runs.patch(run.id).decode("utf-8", "replace"),
        "events": [event_object(one) for one in fleet.runs.events(run.id)],
    }


def print_run(fleet: Fleet, run: FleetRun) -> None:
    """A run as a person reads it: what happened, then how it stands."""
    print_transcript(fleet.runs.events(run.id))
    echo("")
    state, minutes = text(f"fleet.state.{run.state}"), round(run.worked_s / 60, 1)
    echo(text("fleet.stands", run=run.id, state=state, repository=run.repository, minutes=minutes))
    if run.report is not None and run.report.error:
        echo(run.report.error)
    if run.branch:
        echo(text("fleet.branch", branch=run.branch))
    if run.state == "waiting":
        echo(text("fleet.answer_it", run=run.id))
