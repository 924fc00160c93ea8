"""Reads files of requests and prints runs for `duckflow fleet`."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from duckflow.domain.errors import UsageError
from duckflow.domain.reading.faults import describe_faults
from duckflow.fleet.fleet import Fleet
from duckflow.fleet.runs import OVER, FleetLimits, FleetRun, RunOptions
from duckflow.fleet.worker_log import format_line, run_log
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo, on_one_line
from duckflow.ui.output.text_width import pad_to_width, width_of
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen
from duckflow.ui.transcript import event_object, print_transcript

_POLL_S = 0.5


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


def run_lines(runs: Sequence[FleetRun], now: float) -> list[str]:
    """Return a table of runs for people: id, state, age, cost, repository and request."""
    rows = [
        (
            one.id,
            text(f"fleet.state.{one.state}"),
            age(now - one.created),
            "–" if one.cost_usd is None else f"${one.cost_usd:.2f}",
            Path(one.repository).name,
            on_one_line(one.request.splitlines()[0]),
        )
        for one in runs
    ]
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    widths[-1:] = [0]  # the request is the last column and needs no padding
    return ["  ".join(map(pad_to_width, row, widths)) for row in rows]


def age(seconds: float) -> str:
    """Return a time span in its largest unit: seconds, minutes, hours or days."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= size:
            return text(f"fleet.age.{unit}", count=int(seconds // size))
    return text("fleet.age.seconds", count=max(int(seconds), 0))


def print_log(fleet: Fleet, wanted: str | None) -> None:
    """Print the log of a run, or the workers' newest reports about all runs."""
    if wanted is None:
        lines = [format_line(one) for one in fleet.runs.logged()]
    else:
        run = fleet.runs.find(wanted).id
        lines = run_log(fleet.runs.logged(run), fleet.runs.events(run), run)
    for line in lines:
        echo(line)
    if not lines:
        echo(text("fleet.no_log"))


def follow_run(fleet: Fleet, wanted: str) -> int:
    """Show a run as in a conversation, from its beginning until it ends; return its exit code."""
    run, seen, said = fleet.runs.find(wanted), 0, ""
    screen = Screen(Writer(formatted=sys.stdout.isatty()), also=("message", "question", "undo"))
    while True:
        run = fleet.runs.find(run.id)  # before the events, so that those of its last state are complete
        for recorded in fleet.runs.events(run.id, seen):
            screen(recorded)
            seen = recorded.seq
        if (now := f"{run.state} {run.question} {run.worker}") != said:
            said = now
            echo(_state_line(run), sys.stderr)
        if run.state in OVER:
            return run.report.exit_code if run.report else 1
        time.sleep(_POLL_S)


def _state_line(run: FleetRun) -> str:
    if run.state == "waiting":
        return text("fleet.answer_it", run=run.id)
    if run.state in OVER and run.branch:
        return text("fleet.branch", branch=run.branch)
    if run.state in OVER and run.report and run.report.error:
        return run.report.error
    state = text(f"fleet.state.{run.state}")
    return text("fleet.now", run=run.id, state=state, worker=run.worker if run.state == "working" else "")


def limits_line(limits: FleetLimits, spent_usd: float) -> str:
    """Return the limits of a fleet, and what was spent, for people."""
    none = text("fleet.no_limit")
    return text(
        "fleet.limits",
        total=limits.total or none,
        per_repository=limits.per_repository or none,
        cost=f"${limits.cost_usd:.2f}" if limits.cost_usd else none,
        spent=f"${spent_usd:.2f}",
    )


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
