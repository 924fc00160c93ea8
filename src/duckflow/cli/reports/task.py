"""What `duckflow run` does: open a session, work until it ends or asks, and say how with an exit code."""

import asyncio
import os
import shlex
import signal
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from duckflow.app import App, build, choose, open_log, unknown_prices
from duckflow.cli.log_file import open_log_file
from duckflow.config.loading import Loaded
from duckflow.domain.errors import UsageError
from duckflow.domain.events import VerifySet
from duckflow.domain.state import RequestOutcome
from duckflow.i18n.answers import read_answer, read_choice
from duckflow.i18n.catalogue import text
from duckflow.loops.chat import EXIT_CODES
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.headless import JsonLines, PlainText
from duckflow.ui.output.escaping import echo


@dataclass(frozen=True, kw_only=True)
class RunTask:
    """One task, or the session to go on with and an answer for it."""

    text: str
    folder: Path
    session: str | None
    answer: str | None
    verify: str | None
    json: bool
    keeps_mode: bool = True
    """Whether a session that goes on keeps its mode: none was named."""
    flags: tuple[str, ...] = ()
    """What a command that goes on from here must say again, because the session does not keep it."""


def run_task(task: RunTask, loaded: Loaded) -> int:
    """Do the task; the exit code."""
    return asyncio.run(_work(task, loaded))


async def _work(task: RunTask, loaded: Loaded) -> int:
    for notice in loaded.notices:
        echo(text(notice.key, **notice.values), sys.stderr)
    open_log_file()
    choice = await choose(loaded.settings, os.environ)
    app = build(
        loaded.settings,
        choice,
        task.folder,
        task.session,
        os.environ,
        keeps_mode=task.keeps_mode,
        project=loaded.project,
    )
    try:
        await app.tiers.client(app.model.tier)
        resume = " ".join([app.session.state.session_id, *map(shlex.quote, task.flags)])
        app.session.subscribe(JsonLines() if task.json else PlainText(resume))
        app.begin()
        app.session.record(*await unknown_prices(app.tiers, loaded.settings, os.environ))
        if task.verify is not None:
            app.session.record(VerifySet(command=task.verify.strip()))
        return EXIT_CODES[await _until_done(app, task)]
    finally:
        await app.aclose()


async def _until_done(app: App, task: RunTask) -> RequestOutcome:
    """Work on the task; Ctrl-C and a polite kill end it in order, with everything kept."""
    running = asyncio.ensure_future(_start(app, task))
    loop = asyncio.get_running_loop()
    for wish in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(wish, running.cancel)
    try:
        return await running
    except asyncio.CancelledError:
        return "interrupted"


async def _start(app: App, task: RunTask) -> RequestOutcome:
    """Work, and let the background end its list; if the model waited for it, it goes on after that."""
    outcome = await _begin(app, task)
    while outcome in ("deferred", "pending_user") and app.session.state.background_runs:
        await app.tasks.wait()
        if app.session.state.approval is not None:
            return app.chat.wait_for_answer()
        if outcome == "pending_user":
            return outcome
        outcome = await app.chat.go_on()
    return outcome


async def _begin(app: App, task: RunTask) -> RequestOutcome:
    state = app.session.state
    if state.consultation is not None and task.answer is not None:
        way = read_choice(task.answer, state.consultation)
        return await app.chat.choose(way) if way is not None else app.chat.remind()
    if state.approval is not None and task.answer is not None:
        answer = read_answer(task.answer)
        if answer is None:
            return app.chat.remind()  # neither yes nor no: asked again, and nothing starts
        return await app.chat.answer(answer)
    if (state.consultation is not None or state.approval is not None) and not task.text:
        return app.chat.remind()
    if task.answer is not None and state.request is None:
        raise UsageError("run.nothing_asked", session=state.session_id)
    said = task.answer or task.text
    if said:
        return await app.chat.say(said)
    if state.request is None:
        raise UsageError("run.nothing_open", session=state.session_id)
    return await app.chat.go_on()


def find_session(wanted: str) -> SessionSummary:
    """The session whose id begins so."""
    with closing(open_log()) as log:
        return Sessions(log.database).show(wanted)
