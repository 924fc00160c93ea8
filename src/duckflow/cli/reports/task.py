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
from duckflow.config.loading import LoadedSettings, load
from duckflow.domain.errors import UsageError
from duckflow.domain.habits import habit_of
from duckflow.i18n.catalogue import text
from duckflow.loops.chat import EXIT_CODES
from duckflow.ui.input.keyboard import PlainKeyboard
from duckflow.ui.output.escaping import echo
from duckflow.ui.transcript import PlainText, print_json


def run_with(told: RunFlags) -> int:
    """Do the task of the command line; return the exit code."""
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
    open_log_file()
    session = OpenSession(folder, resume=told.resume, mode=told.mode, verify=told.verify, settings=loaded)
    session.listen(print_json if told.json else PlainText(_said_again(told)))
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
