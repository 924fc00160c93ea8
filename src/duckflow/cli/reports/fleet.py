"""Reads files of requests and prints runs for `duckflow fleet`."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from duckflow.domain.errors import UsageError
from duckflow.domain.reading.faults import describe_faults
from duckflow.fleet.fleet import Fleet
from duckflow.fleet.runs import FleetRun, RunOptions
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo
from duckflow.ui.transcript import event_object, print_transcript


class WantedRun(RunOptions):
    """Line of a file of requests."""

    folder: Path
    request: str


def read_requests(file: Path, common: RunOptions) -> Iterator[tuple[Path, str, RunOptions]]:
    """Read a JSON Lines file of requests; options that a line lacks come from the flags."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError("fleet.file_unreadable", file=file, reason=str(exc)) from exc
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            wanted = WantedRun.model_validate({**common.model_dump(), **json.loads(line)})
        except (ValueError, TypeError) as exc:
            reason = describe_faults(exc, WantedRun) if isinstance(exc, ValidationError) else str(exc)
            raise UsageError("fleet.file_line", file=file, line=number, reason=reason) from exc
        options = RunOptions.model_validate(wanted.model_dump(exclude={"folder", "request"}))
        yield file.parent / wanted.folder, wanted.request, options


def run_json(fleet: Fleet, run: FleetRun) -> str:
    """Return a run as JSON for programs: its row, the open question, the patch and every event."""
    asked = fleet.state(run).question
    found = {
        **run.model_dump(mode="json"),
        "asked": asked.model_dump(mode="json") if asked and run.state == "waiting" else None,
        "patch": fleet.runs.patch(run.id).decode("utf-8", "replace"),
        "events": [event_object(one) for one in fleet.runs.events(run.id)],
    }
    return json.dumps(found, ensure_ascii=False)


def print_run(fleet: Fleet, run: FleetRun) -> None:
    """Print a run for people: its events, then its state."""
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
