"""The work of `duckflow review`: a session with one review, whose result decides the exit code (O4)."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from duckflow.agents.changes import STAGED, read_patch
from duckflow.api import OpenSession
from duckflow.cli.log_file import open_log_file
from duckflow.cli.plain_flags import settings_flags
from duckflow.cli.reports.task import append_summary
from duckflow.cli.secrets import without_secrets
from duckflow.config.loading import load
from duckflow.domain import commands
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import ActionFinished, ReviewFinished, StoredEvent
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.work.review import ReviewReport
from duckflow.i18n.catalogue import text
from duckflow.safety.syscalls import close_memory
from duckflow.ui.job_summary import failed_start
from duckflow.ui.output.escaping import echo
from duckflow.ui.review_summary import review_markdown
from duckflow.ui.transcript import PlainText
from duckflow.ui.views.review import review_notes, review_text

_FOUND, _STOPPED, _NO_ANSWER, _INTERRUPTED = 1, 3, 4, 130
_STDIN = "-"


class ReviewFlags(NamedTuple):
    """Flags of `duckflow review`."""

    changes: str
    workspace: Path
    model: str | None = None
    max_loops: int | None = None
    max_cost: float | None = None
    summary: Path | None = None
    staged: bool = False
    details: bool = False
    json: bool = False
    trust: bool = False


def review_with(told: ReviewFlags) -> int:
    """Review the changes; return the exit code."""
    if told.summary is not None:
        append_summary(told.summary, "")  # report an unwritable file before the work, not after it
    try:
        report = asyncio.run(_review(told))
    except UserError as error:
        if told.summary is not None:
            append_summary(told.summary, failed_start(without_secrets(text(error.key, **error.values))))
        raise
    if told.summary is not None and report is not None:
        append_summary(told.summary, review_markdown(report))
    return _INTERRUPTED if report is None else _show(report, told)


async def _review(told: ReviewFlags) -> ReviewReport | None:
    """Return the result, None if the user stopped the review."""
    limits = told.max_loops, told.max_cost
    loaded = load(told.workspace, trusted=told.trust, flags=settings_flags(told.model, "plan", *limits))
    for notice in loaded.notices:
        echo(text(notice.key, **notice.values), sys.stderr)
    if loaded.settings.shell.sandbox == "external":
        echo(text("sandbox.external"), sys.stderr)
        close_memory()  # as for `duckflow run`
    wanted = _wanted(told)
    open_log_file()
    session = OpenSession(told.workspace, settings=loaded, reads_only=True)
    heard = _Heard()
    session.listen(heard)
    async with session:
        loop = asyncio.get_running_loop()
        for wish in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(wish, session.cancel)
        await session.client.send(wanted)
    if heard.refused:
        raise UsageError("review.refused", reason=heard.refused)
    return heard.report


def _wanted(told: ReviewFlags) -> commands.ReviewChanges:
    if told.staged and told.changes:
        raise UsageError("review.one_of_two")
    if told.staged:
        return commands.ReviewChanges(changes=STAGED)
    if told.changes == _STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("review.no_patch", path=_STDIN, reason=text("review.no_stdin"))
        return commands.ReviewChanges(changes=_STDIN, patch=sys.stdin.buffer.read())
    return commands.ReviewChanges(changes=told.changes, patch=read_patch(Path(), told.changes))


class _Heard:
    """Shows what happens on standard error, and keeps the result."""

    def __init__(self) -> None:
        self._show = PlainText(())
        self.report: ReviewReport | None = None
        self.refused = ""
        """Why the changes can't be reviewed."""

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        if isinstance(what, StoredEvent) and isinstance(what.event, ReviewFinished):
            self.report = what.event.report
            return
        if isinstance(what, StoredEvent) and isinstance(what.event, ActionFinished):
            reason, failed = what.event.reason, what.event.outcome == "failed"
            self.refused = text(reason.key, **reason.values) if reason else what.event.text if failed else ""
            return
        self._show(what)


def _show(report: ReviewReport, told: ReviewFlags) -> int:
    if told.json:
        echo(report.model_dump_json(indent=2))
        for note in review_notes(report):
            echo(note, sys.stderr)
    else:
        echo(review_text(report, details=told.details))
    if report.proven:
        return _FOUND
    if report.complete:
        return 0
    if report.outcome == "interrupted":
        return _INTERRUPTED
    return _NO_ANSWER if report.outcome in ("failed", "provider_error") else _STOPPED
