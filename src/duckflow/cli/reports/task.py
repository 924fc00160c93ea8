"""What `duckflow run` does: open a session, work until it ends or asks, and say how with an exit code."""

import asyncio
import gc
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from duckflow.api import OpenSession, Work, find_session
from duckflow.cli.log_file import open_log_file
from duckflow.cli.plain_flags import RunFlags, settings_flags
from duckflow.config.loading import Loaded, load
from duckflow.domain.errors import UsageError
from duckflow.domain.modes import Mode
from duckflow.i18n.catalogue import text
from duckflow.loops.chat import EXIT_CODES
from duckflow.ui.headless import JsonLines, PlainText
from duckflow.ui.output.escaping import echo


class RunTask(NamedTuple):
    """One task, or the session to go on with and an answer for it."""

    text: str
    folder: Path
    session: str | None
    answer: str | None
    verify: str | None
    json: bool
    mode: Mode | None = None
    """A session that goes on keeps its mode if none was named."""
    flags: tuple[str, ...] = ()
    """What a command that goes on from here must say again, because the session does not keep it."""


def run_with(told: RunFlags) -> int:
    """Do what the command line says; the exit code."""
    if told.answer is not None and not told.resume:
        raise UsageError("run.answer_without_resume")
    if not told.resume and not (told.task or "").strip():
        raise UsageError("run.no_task")
    earlier = find_session(told.resume) if told.resume else None
    folder = told.workspace or Path(earlier.workspace if earlier else "")
    limits = told.max_loops, told.max_cost
    loaded = load(folder, trusted=told.trust, flags=settings_flags(told.model, told.mode, *limits))
    again = {"--model": told.model, "--max-loops": told.max_loops, "--max-cost": told.max_cost}
    flags = [word for flag, value in again.items() if value is not None for word in (flag, str(value))]
    task = RunTask(
        text=(told.task or "").strip(),
        folder=folder,
        session=earlier.id if earlier else None,
        answer=told.answer,
        verify=told.verify,
        json=told.json,
        mode=told.mode,
        flags=(*flags, *(["--trust"] if told.trust else [])),
    )
    return run_task(task, loaded)


def run_task(task: RunTask, loaded: Loaded) -> int:
    """Do the task; the exit code."""
    return asyncio.run(_work(task, loaded))


async def _work(task: RunTask, loaded: Loaded) -> int:
    for notice in loaded.notices:
        echo(text(notice.key, **notice.values), sys.stderr)
    open_log_file()
    session = OpenSession(
        task.folder, resume=task.session, mode=task.mode, verify=task.verify, settings=loaded
    )
    session.listen(JsonLines() if task.json else PlainText(task.flags))
    async with session:
        gc.freeze()  # what is there now stays to the end: no collection has to look at it
        work = _begin(session, task)
        loop = asyncio.get_running_loop()
        # Ctrl-C and a polite kill end it in order, with everything kept.
        for wish in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(wish, session.cancel)
        return EXIT_CODES[await work]


def _begin(session: OpenSession, task: RunTask) -> Work:
    asked, request = session.question, session.state.request
    if asked is not None and task.answer is not None:
        session.answer(asked, task.answer)
        return session.go_on()
    if asked is None and task.answer is not None and request is None:
        raise UsageError("run.nothing_asked", session=session.id)
    said = task.answer or task.text
    return session.start(said) if said else session.go_on()
