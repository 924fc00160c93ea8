"""Installs a model with a progress bar, or with lines if the output is no terminal."""

import asyncio
import os
import sys
from contextlib import aclosing, suppress
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from duckflow.app.models import choose
from duckflow.config.loading import load
from duckflow.domain.errors import ProviderError
from duckflow.domain.frozen import replace
from duckflow.i18n.catalogue import text
from duckflow.llm.weights.installation import find, install
from duckflow.llm.weights.place import Progress as Report
from duckflow.ui.output.escaping import echo

_STEP = 0.1
"""Share of a download after which a line is printed."""


def is_needed() -> bool:
    """Return True if the embedded model would be used but is not installed, and no file is configured."""
    settings = load(Path()).settings
    embedded = settings.llm.embedded
    if embedded.path is not None or find(embedded.model) is not None:
        return False
    return asyncio.run(choose(settings, os.environ)).name == embedded.full_name


def install_shown(name: str, source: Path | None) -> None:
    """Install a model and show the progress."""
    bar = sys.stderr.isatty()
    try:
        _install(name, source, bar=bar)
        if find_spec("xllamacpp") is not None:
            with suppress(ProviderError):  # the first message fails with the same error, and reports it
                asyncio.run(_read_beginning(name, bar=bar))
    except KeyboardInterrupt:
        echo(text("model.interrupted", name=name), sys.stderr)
        raise
    echo(text("model.ready", name=name), sys.stderr)


async def _read_beginning(name: str, *, bar: bool) -> None:
    """Evaluate the common beginning of all prompts, so that the first answer comes sooner."""
    from duckflow.dialects.compact_prompt import compact_system  # noqa: PLC0415 - as above
    from duckflow.llm.local.embedded import open_embedded  # noqa: PLC0415 - only once there are weights

    options = replace(load(Path()).settings.llm.embedded, model=name, path=None)
    reading = text("model.reading", name=name)
    if not bar:
        sys.stderr.write(f"{reading}\n")
    with _progress(disable=not bar) as shown:
        task = shown.add_task(reading, total=1.0)
        async with aclosing(await open_embedded(None, options)) as model:
            await model.read_beginning(compact_system(""), lambda share: shown.update(task, completed=share))


def _progress(*columns: ProgressColumn, disable: bool = False) -> Progress:
    shown = (TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn())
    return Progress(*shown, console=Console(stderr=True), transient=True, disable=disable)


def _install(name: str, source: Path | None, *, bar: bool) -> None:
    shown = -1.0
    with _progress(DownloadColumn(), disable=not bar) as progress:
        task = progress.add_task(text("model.fetching", name=name), total=None)

        def report(done: Report) -> None:
            nonlocal shown
            checks, share = done.source == "check", done.done_bytes / max(done.total_bytes, 1)
            said = text("model.checking" if checks else "model.fetching", name=name)
            progress.update(task, description=said, completed=done.done_bytes, total=done.total_bytes)
            if not bar and not checks and share >= shown + _STEP:
                shown = share
                echo(text("model.percent", name=name, percent=round(100 * share)), sys.stderr)
                sys.stderr.flush()

        install(name, source, report)
