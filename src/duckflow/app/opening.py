"""Opening a session for whoever works with it: built, watched, begun."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

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


async def open_app(
    loaded: LoadedSettings,
    folder: Path,
    session_id: str | None,
    relay: Relay | None,
    *listeners: Subscriber,
    keeps_mode: bool = False,
    model_first: bool = False,
    unsaved: Unsaved | None = None,
    verify: str | None = None,
    durable: DurableSession | None = None,
) -> App:
    """A session that has begun, new or taken up again; the listeners see all of it.

    UserError if that can't be: its folder is in use, or (`model_first`) no model answers.
    """
    settings = loaded.settings
    choice = await choose(settings, os.environ)
    app = build(
        settings,
        choice,
        folder,
        session_id,
        os.environ,
        relay,
        keeps_mode=keeps_mode,
        project=loaded.project,
        unsaved=unsaved,
        durable=durable,
    )
    try:
        if model_first:
            await app.tiers.client(app.model.tier)
        for listener in (*listeners, *_tracing(loaded)):
            app.session.subscribe(listener)
        app.begin(at_a_pause=durable is not None)
        app.session.record(*await unknown_prices(app.tiers, settings, os.environ))
        if verify is not None:
            app.session.record(VerifySet(command=verify.strip()))
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
