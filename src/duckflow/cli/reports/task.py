"""The work of `duckflow run`: opens a session, works until it ends or asks, and returns an exit code."""

import asyncio
import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from duckflow.api import OpenSession, Work, find_session
from duckflow.cli.log_file import open_log_file
from duckflow.cli.plain_flags import RunFlags, settings_flags
from duckflow.cli.secrets import without_secrets
from duckflow.config.loading import LoadedSettings, load
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.habits import habit_of
from duckflow.i18n.catalogue import text
from duckflow.loops.chat import EXIT_CODES
from duckflow.safety.syscalls import close_memory
from duckflow.ui.input.keyboard import PlainKeyboard
from duckflow.ui.job_summary import JobSummary, failed_start
from duckflow.ui.output.escaping import echo
from duckflow.ui.transcript import PlainText, print_json

_STDIN = "-"
"""Stands for the task if it comes from standard input."""


def run_with(told: RunFlags) -> int:
    """Do the task of the command line; return the exit code."""
    if told.summary is not None:
        append_summary(told.summary, "")  # report an unwritable file before the work, not after it
    try:
        return _run(told._replace(task=_from_stdin() if told.task == _STDIN else told.task))
    except UserError as error:
        if told.summary is not None:
            append_summary(told.summary, failed_start(without_secrets(text(error.key, **error.values))))
        raise


def _from_stdin() -> str:
    """Return the task from standard input, which has no limit on its length as an argument has."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("run.no_task")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def append_summary(path: Path, written: str) -> None:
    """Add text to a summary file; UsageError if it can't be written."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(written)
    except OSError as exc:
        raise UsageError("job.not_written", path=path, reason=exc.strerror or str(exc)) from exc


def _run(told: RunFlags) -> int:
    if told.answer is not None and not told.resume:
        raise UsageError("run.answer_without_resume")
    if not told.resume and not (told.task or "").strip():
        raise UsageError("run.no_task")
    if told.task and habit_of(told.task):
        raise UsageError("run.not_a_task", task=told.task.strip())
    earlier = find_session(told.resume) if told.resume else None
    folder = told.workspace or Path(earlier.workspace if earlier else "")
    limits = told.max_loops, told.max_cost
    loaded = load(folder, trusted=told.trust, flags=settings_flags(told.model, told.mode, *limits))
    return asyncio.run(_work(told, folder, loaded))


async def _work(told: RunFlags, folder: Path, loaded: LoadedSettings) -> int:
    for notice in loaded.notices:
        echo(text(notice.key, **notice.values), sys.stderr)
    if loaded.settings.shell.sandbox == "external":
        echo(text("sandbox.external"), sys.stderr)
        close_memory()  # commands are processes of the same user, and the environment has the model's key
    open_log_file()
    session = OpenSession(folder, resume=told.resume, mode=told.mode, verify=told.verify, settings=loaded)
    session.listen(print_json if told.json else PlainText(_said_again(told)))
    summary = JobSummary(_said_again(told)) if told.summary is not None else None
    if summary is not None:
        session.listen(summary)
    async with session:
        gc.freeze()  # objects of the start live to the end, so collections can skip them
        work = _begin(session, told)
        loop = asyncio.get_running_loop()
        # Ctrl-C and SIGTERM end the work in order.
        for wish in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(wish, session.cancel)
        hearing = asyncio.ensure_future(_hear(session)) if told.steer or _on_terminal() else None
        try:
            return EXIT_CODES[await work]
        finally:
            if hearing is not None:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
            if summary is not None and told.summary is not None:
                append_summary(told.summary, summary.markdown(session.state))


def _on_terminal() -> bool:
    """Return whether standard input is a terminal that this process may read."""
    return sys.stdin is not None and sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


async def _hear(session: OpenSession) -> None:
    """Send each line of standard input to the current work, until either ends (C6)."""
    keyboard = PlainKeyboard()
    keyboard.start()
    try:
        with suppress(EOFError, UsageError):
            while True:
                if line := await keyboard.inbox.get():
                    session.send(line)
    finally:
        await keyboard.stop()


def _begin(session: OpenSession, told: RunFlags) -> Work:
    asked, request = session.question, session.state.request
    if asked is not None and told.answer is not None:
        session.answer(asked, told.answer)
        return session.go_on()
    if asked is None and told.answer is not None and request is None:
        raise UsageError("run.nothing_asked", session=session.id)
    said = told.answer or (told.task or "").strip()
    return session.start(said) if said else session.go_on()


def _said_again(told: RunFlags) -> tuple[str, ...]:
    """Return the flags that the next command must repeat, because the session does not keep them."""
    again = {"--model": told.model, "--max-loops": told.max_loops, "--max-cost": told.max_cost}
    flags = [word for flag, value in again.items() if value is not None for word in (flag, str(value))]
    return (*flags, *(["--trust"] if told.trust else []))
