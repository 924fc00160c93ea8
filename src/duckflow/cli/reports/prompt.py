"""Assembles a prompt as a session would, and prints it with its size (`duckflow prompt show`)."""

import asyncio
import json as jsons
import os
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from duckflow.api import latest_session
from duckflow.app.app import App
from duckflow.app.models import choose
from duckflow.app.opening import Opening
from duckflow.config.loading import LoadedSettings
from duckflow.domain.events import StoredEvent
from duckflow.domain.model import ChatMessage
from duckflow.domain.reduce.apply import apply
from duckflow.i18n.catalogue import text
from duckflow.llm.local.relay import write_out
from duckflow.prompts.sections import RenderedPrompt
from duckflow.ui.output.escaping import echo


def print_prompt(loaded: LoadedSettings, folder: Path, *, last: bool, json: bool) -> None:
    """Print the prompt of a new session, or of the last one in this folder."""
    for notice in loaded.notices:
        echo(text(notice.key, **notice.values), sys.stderr)
    session_id = latest_session(folder).id if last else None
    prompt = asyncio.run(_assemble(Opening(loaded, folder, session_id)))
    # As in most wire formats, messages of the same role are one.
    by_role = groupby(prompt.request.messages, key=attrgetter("role"))
    turns = tuple(
        ChatMessage(role=role, text="\n\n".join(one.text for one in turn)) for role, turn in by_role
    )
    if not json:
        echo(write_out(turns))
        echo(_table(prompt), sys.stderr)
        return
    found = {
        "model": prompt.model,
        "window": prompt.window,
        "window_from": prompt.window_from,
        "messages": [turn.model_dump(include={"role", "text"}) for turn in turns],
        "sections": [{"section": name, "tokens": count} for name, count in prompt.tokens.items()],
        "tokens": sum(prompt.tokens.values()),
    }
    echo(jsons.dumps(found, ensure_ascii=False))


async def _assemble(opening: Opening) -> RenderedPrompt:
    choice = await choose(opening.loaded.settings, os.environ)
    async with aclosing(App(opening, choice, os.environ)) as app:
        state = app.session.state
        # This makes the state of an open session without storing anything.
        opened = apply(state, StoredEvent(seq=state.seq + 1, at=datetime.now(UTC), event=app.started))
        # Prompts are redacted only where they are sent to the model, which this one is not.
        return app.session.redactor.clean_all(await app.model.preview(opened))


def _table(prompt: RenderedPrompt) -> str:
    rows = [(count, text(f"prompt.section.{name}")) for name, count in prompt.tokens.items() if count]
    source = text(f"window.{prompt.window_from}")
    total = text("prompt.total", window=f"{prompt.window:,}", source=source)
    rows.append((sum(prompt.tokens.values()), total))
    listed = [f"{count:>9,}  {title}" for count, title in rows]
    return "\n".join(["", text("prompt.tokens", model=prompt.model), *listed])
