"""The runs of the fleet for the web view (M7, M8). Nothing of the fleet is imported before it is used."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.domain.commands import ClientCommand
from duckflow.domain.errors import UserError
from duckflow.domain.events import StoredEvent
from duckflow.fleet import in_use
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import harmless
from duckflow.ui.web.session_view import RUN_PREFIX, Payload, words_payload

if TYPE_CHECKING:
    from duckflow.fleet.fleet import Fleet
    from duckflow.fleet.runs import FleetRun

_FRESH_S = 1.0
"""Seconds for which all pages share one result of the database."""
_LISTED = 200
_CRASHED = "error"
"""Outcome of a run that failed outside a request; its report has the reason."""


class FleetSessions:
    """Access to the fleet, which is opened on first use. Threads may call all methods."""

    def __init__(self, database: str | None) -> None:
        self._database = database
        self._opened = ExitStack()
        self._lock = threading.RLock()
        self._fleet: Fleet | None = None
        self._looked = -_FRESH_S
        self._seen: Payload | None = None
        self._asks: dict[str, str] = {}

    def look(self, session_id: str) -> Payload | None:
        """Return the counts of runs by state, and all runs (for "fleet") or one run (for its id)."""
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH_S:
                try:
                    self._seen = self._read()
                except UserError as error:
                    self._seen = {"error": text(error.key, **error.values), "counts": {}, "runs": []}
                self._looked = time.monotonic()
            seen = self._seen
        if seen is None:
            return None
        run = None
        if session_id.startswith(RUN_PREFIX) and not seen["error"]:
            with suppress(UserError):
                run = self._run(self._needed().runs.find(session_id.removeprefix(RUN_PREFIX)))
        return {**seen, "runs": seen["runs"] if session_id == "fleet" else [], "run": run}

    def events(self, run: str, after: int) -> Sequence[StoredEvent]:
        """Return the events of a run with a number above `after`; none if the database is unreachable."""
        try:
            return self._needed().runs.events(run, after)
        except UserError:
            return ()

    def patch(self, run: str) -> str:
        """Return the changes of a run, in a form that git can apply."""
        fleet = self._needed()
        return fleet.runs.patch(fleet.runs.find(run).id).decode("utf-8", "replace")

    def send(self, run: str, command: ClientCommand) -> str:
        """Carry out a command on a run; return the reason if it is refused, as a catalogue key, else ""."""
        objection = self._needed().send(run, command)
        self._looked = -_FRESH_S
        return objection

    def retry(self, run: str) -> None:
        """Continue a run that failed or was cancelled."""
        self._needed().retry(run)
        self._looked = -_FRESH_S

    def submit(self, folder: str, said: str, options: Mapping[str, object]) -> str:
        """Queue a request; return the run's id."""
        from duckflow.fleet.runs import RunOptions  # noqa: PLC0415 - an extra

        (run,) = self._needed().submit(Path(folder), said, RunOptions.model_validate(options))
        self._looked = -_FRESH_S
        return run

    def repositories(self) -> set[str]:
        """Return the repositories of the runs."""
        return {run.repository for run in self._needed().runs.listed(_LISTED)}

    def close(self) -> None:
        """Close the database."""
        self._opened.close()

    def _open(self) -> "Fleet | None":
        if self._fleet is None and (self._database or in_use()):
            try:
                from duckflow.fleet.fleet import open_fleet  # noqa: PLC0415 - an extra, and heavy
            except ImportError:
                return None
            self._fleet = self._opened.enter_context(open_fleet(self._database))
        return self._fleet

    def _needed(self) -> "Fleet":
        with self._lock:
            fleet = self._open()
        if fleet is None:
            raise UserError("fleet.extra_missing")
        return fleet

    def _read(self) -> Payload | None:
        fleet = self._open()
        if fleet is None:
            return None
        from duckflow.fleet.runs import RunFilter  # noqa: PLC0415 - an extra

        waiting = fleet.runs.listed(_LISTED, RunFilter(state="waiting"))
        others = [one for one in fleet.runs.listed(_LISTED) if one.state != "waiting"]
        runs = [self._run(one) for one in (*waiting, *others)]
        return {"error": "", "counts": fleet.runs.counts(), "runs": runs}

    def _run(self, run: "FleetRun") -> Payload:
        report, waits = run.report, run.state == "waiting"
        outcome = run.outcome if run.state in ("done", "failed") and run.outcome != _CRASHED else ""
        return {
            "id": run.id,
            "state": run.state,
            "label": text(f"fleet.state.{run.state}"),
            "repository": harmless(run.repository),
            "request": harmless(run.request),
            "updated": run.updated,
            "minutes": round(run.worked_s / 60, 1),
            "outcome": text(f"web.outcome.{outcome}") if outcome else "",
            "score": report.satisfaction if report else None,
            "error": harmless(report.error) if report else "",
            "branch": harmless(run.branch),
            "asks": self._asked(run) if waits else "",
            "question": words_payload(run.question) if waits else None,
            "can_cancel": run.state in ("queued", "working", "waiting"),
            "can_retry": run.state in ("failed", "cancelled"),
        }

    def _asked(self, run: "FleetRun") -> str:
        """Return the question of a run in a line; computed once for each question."""
        if run.question not in self._asks:
            from duckflow.fleet.questions import question_text  # noqa: PLC0415 - an extra

            self._asks[run.question] = question_text(self._needed().state(run))
        return self._asks[run.question]
