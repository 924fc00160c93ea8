"""Opening a session: built, watched, begun."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from duckflow.app.app import App
from duckflow.app.build import build
from duckflow.app.foundation import DurableSession
from duckflow.app.models import choose, unknown_prices
from duckflow.config.loading import LoadedSettings
from duckflow.config.places import state_dir
from duckflow.domain.errors import UsageError
from duckflow.domain.events import VerifySet
from duckflow.llm.local.relay import Relay
from duckflow.loops.session import Subscriber
from duckflow.tools.files.unsaved import Unsaved

TRACES = "traces.jsonl"


class Opening(NamedTuple):
    """A session to be opened: its folder, the settings, and what the interface brings along."""

    loaded: LoadedSettings
    folder: Path
    session_id: str | None = None
    """An earlier session; a new one if left out."""
    attended: bool = False
    """A person answers questions, and may be asked about the project's own tests, too."""
    relay: Relay = Relay()
    keeps_mode: bool = False
    """An earlier session keeps its mode, whatever the settings say."""
    model_first: bool = False
    """Refuse to open if no model answers."""
    unsaved: Unsaved | None = None
    """The text of files that are open in an editor."""
    verify: str | None = None
    durable: DurableSession | None = None


async def open_app(opening: Opening, *listeners: Subscriber) -> App:
    """A session that has begun, new or taken up again; the listeners see all of it.

    UserError if that can't be: its folder is in use, or (`model_first`) no model answers.
    """
    loaded = opening.loaded
    choice = await choose(loaded.settings, os.environ)
    app = build(
        loaded.settings,
        choice,
        opening.folder,
        opening.session_id,
        os.environ,
        opening.relay,
        attended=opening.attended,
        keeps_mode=opening.keeps_mode,
        project=loaded.project,
        unsaved=opening.unsaved,
        durable=opening.durable,
    )
    try:
        if opening.model_first:
            await app.tiers.client(app.model.tier)
        for listener in (*listeners, *_tracing(loaded)):
            app.session.subscribe(listener)
        app.begin(at_a_pause=opening.durable is not None)
        app.session.record(*await unknown_prices(app.tiers, loaded.settings, os.environ))
        if opening.verify is not None:
            app.session.record(VerifySet(command=opening.verify.strip()))
    except BaseException:
        await app.aclose()
        raise
    return app


def _tracing(loaded: LoadedSettings) -> Sequence[Subscriber]:
    """What writes spans of all that happens, if that is wanted."""
    if not loaded.settings.tracing.enabled:
        return ()
    if find_spec("opentelemetry.sdk") is None:
        raise UsageError("tracing.not_installed")
    from duckflow.ui.tracing import SpanWriter, file_tracer  # noqa: PLC0415 - heavy, and rarely wanted

    return (SpanWriter(file_tracer(state_dir() / TRACES)),)
