"""Shows a session that another process has open in a second terminal window."""

from contextlib import closing
from pathlib import Path

from duckflow.api import find_session
from duckflow.app.places import holder_of, open_log
from duckflow.cli.secrets import redactor
from duckflow.config.loading import load
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from duckflow.session.remote import RemoteSession
from duckflow.ui.conversation import Conversation
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.editor import TextEditor
from duckflow.ui.screen import Screen
from duckflow.ui.transcript import last_exchange


async def converse(wanted: str, frontend: Frontend) -> None:
    """Show a session until the user or the process that has it open leaves."""
    found = find_session(wanted)
    if holder_of(found.workspace) != found.id:
        raise UsageError("attach.nobody", session=found.id)
    ui = load(Path(found.workspace), trusted=False, flags={}).settings.ui
    frontend.adapt(ui.theme, vi=ui.editing_mode == "vi", notices=ui.notify)
    with closing(open_log()) as log:
        session = RemoteSession(log, found, redactor())
        for line in last_exchange(session.earlier()):
            frontend.writer.line(line, "dim")
        frontend.writer.line(text("attach.hello", session=found.id), "dim")
        try:
            editor = TextEditor(frontend.keyboard)
            conversation = Conversation(session, frontend, Screen(frontend.writer), editor, guest=True)
            await conversation.run(session.updates())
        finally:
            await session.aclose()
