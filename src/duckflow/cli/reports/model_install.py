"""Installing a model with a bar that moves, or with a line now and then if nobody watches."""

import asyncio
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from duckflow.app.models import choose
from duckflow.config.loading import load
from duckflow.domain.errors import ProviderError
from duckflow.domain.frozen import replace
from duckflow.i18n.catalogue import text
from duckflow.llm.weights.installation import find, install
from duckflow.llm.weights.place import Progress as Report
from duckflow.ui.output.escaping import echo

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
    bar = sys.stderr.isatty()
    try:
        (_bar if bar else _lines)(name, source)
        if find_spec("xllamacpp") is not None:
            with suppress(ProviderError):  # the first message meets the same error, and tells it
                asyncio.run(_read_beginning(name, bar=bar))
    except KeyboardInterrupt:
        echo(text("model.interrupted", name=name), sys.stderr)
        raise
    echo(text("model.ready", name=name), sys.stderr)


async def _read_beginning(name: str, *, bar: bool) -> None:
    """Let the model read what all prompts begin with, so that no first answer has to wait for it."""
    from duckflow.dialects.compact_prompt import compact_system  # noqa: PLC0415 - as above
    from duckflow.llm.local.embedded import open_embedded  # noqa: PLC0415 - only once there are weights

    options = replace(load(Path()).settings.llm.embedded, model=name, path=None)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not bar) as shown:
        if not bar:
            sys.stderr.write(text("model.reading", name=name) + "\n")
        task = shown.add_task(text("model.reading", name=name), total=1.0)
        model = await open_embedded(None, options)
        try:
            await model.read_beginning(compact_system(""), lambda share: shown.update(task, completed=share))
        finally:
            await model.aclose()


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
            echo(text("model.percent", name=name, percent=percent), sys.stderr)
            sys.stderr.flush()

    return install(name, source, report)
