"""Installing a model with a bar that moves, or with a line now and then where nobody watches."""

import asyncio
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from duckflow.app import choose
from duckflow.config.loading import load
from duckflow.i18n.catalogue import text
from duckflow.llm.weights.installation import find, install
from duckflow.llm.weights.progress import Progress as Report

_STEP = 0.1
"""Without a terminal, a line for each such part."""


def is_needed() -> bool:
    """Whether the embedded model would be used, has no file yet, and the user has set none."""
    settings = load(Path()).settings
    embedded = settings.llm.embedded
    if embedded.path is not None or find(embedded.model) is not None:
        return False
    return asyncio.run(choose(settings, os.environ)).name == "embedded"


def install_shown(name: str, source: Path | None) -> None:
    """Install a model and show how far it is."""
    shown = _bar if sys.stderr.isatty() else _lines
    try:
        shown(name, source)
    except KeyboardInterrupt:
        sys.stderr.write(text("model.interrupted", name=name) + "\n")
        raise
    sys.stderr.write(text("model.ready", name=name) + "\n")


def _bar(name: str, source: Path | None) -> Path:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text("model.fetching", name=name), total=None)

        def report(done: Report) -> None:
            key = "model.checking" if done.source == "check" else "model.fetching"
            bar.update(
                task, description=text(key, name=name), completed=done.done_bytes, total=done.total_bytes
            )

        return install(name, source, report)


def _lines(name: str, source: Path | None) -> Path:
    shown = -1.0

    def report(done: Report) -> None:
        nonlocal shown
        share = done.done_bytes / max(done.total_bytes, 1)
        if done.source != "check" and share >= shown + _STEP:
            shown = share
            percent = round(100 * share)
            sys.stderr.write(text("model.percent", name=name, percent=percent) + "\n")
            sys.stderr.flush()

    return install(name, source, report)
