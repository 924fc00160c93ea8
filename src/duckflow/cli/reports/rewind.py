"""Rewinds a session without its model (`duckflow sessions rewind`, L8)."""

import os
from contextlib import aclosing, closing
from pathlib import Path

from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.app.places import open_log
from duckflow.config.loading import load
from duckflow.llm.default_model import ModelChoice
from duckflow.loops.session import Session
from duckflow.loops.undo.rewind import rewind
from duckflow.store.sessions import SessionSummary
from duckflow.ui.views.events import Describer
from duckflow.ui.views.undo import undo_text


async def rewind_session(found: SessionSummary, before: int, *, files: bool, conversation: bool) -> str:
    """Rewind a session to the point before a message; return the text for the user."""
    folder = Path(found.workspace)
    with closing(open_log()) as log:
        model = Session(log, found.id).state.model
    choice = ModelChoice(name=model, reason_key="llm.chosen_by_setting")
    opening = Opening(load(folder), folder, found.id, keeps_mode=True)
    async with aclosing(App(opening, choice, os.environ)) as app:
        app.begin()
        report = await rewind(
            app.session, app.log, app.undoing, before, conversation=conversation, files=files
        )
        told = Describer()(app.log.load(found.id)[-1].event)
    lines = [told.text if told else "", undo_text(report) if report.actions or report.commands else ""]
    return "\n".join(line for line in lines if line)
